import type { ScreenProps } from "./container";
import { Empty } from "./ui";
export function Query({ at: _at }: ScreenProps) {
  return <Empty>…</Empty>;
}
