// The page, from its start.

import { render } from "preact";
import { lost } from "./api";
import { beats, start } from "./clock";
import { App } from "./frame";
import { follow, readClock, reload } from "./live";
import { enter } from "./session";

async function begin(): Promise<void> {
  for (;;) {
    try {
      await enter();
      break;
    } catch {
      // Nobody is there yet.
      lost.value = true;
      await beats(2);
    }
  }
  await readClock();
  await reload();
  follow();
}

start();
const root = document.getElementById("app");
if (root) render(<App />, root);
void begin();
