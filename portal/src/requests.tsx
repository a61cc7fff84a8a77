
import { Empty } from "./ui";
export function Requests() {
  return <Empty>…</Empty>;
}
