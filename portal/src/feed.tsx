import type { ScreenProps } from "./container";
import { Empty } from "./ui";
export function Feed({ at: _at }: ScreenProps) {
  return <Empty>…</Empty>;
}
