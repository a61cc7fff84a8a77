import type { ScreenProps } from "./container";
import { Empty } from "./ui";
export function Throughput({ at: _at }: ScreenProps) {
  return <Empty>…</Empty>;
}
