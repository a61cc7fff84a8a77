// Asking for the key: over the page, so that what was being written stays under it.

import { useSignal } from "@preact/signals";
import { left, needsKey } from "./api";
import { logIn, server } from "./session";
import { Button, Dialog, Failure, Field, Note, useTask } from "./ui";

export function Login() {
  if (!needsKey.value) return null;
  return <Form again={server.value !== null} />;
}

function Form({ again }: { again: boolean }) {
  const key = useSignal("");
  const wrong = useSignal(false);
  const task = useTask();
  const submit = (event: Event) => {
    event.preventDefault();
    task.run(async () => {
      wrong.value = !(await logIn(key.peek().trim()));
    });
  };
  return (
    <Dialog title={again ? "The session has ended" : "Log in to dayfly"} close={() => undefined} firm>
      <form class="stack" onSubmit={submit}>
        {left.value && <Note>You are logged out. What you were writing stays in this tab until it is closed.</Note>}
        {again && <Note>Give the key again, and it goes on. What you were writing is still there.</Note>}
        {/* For those who keep passwords: whose key it is. */}
        <input type="text" autocomplete="username" value={location.host} hidden readOnly />
        <Field
          label="Account key"
          error={wrong.value ? "The server does not know this key." : null}
          hint="The primary, the secondary or the read-only key. It is sent once, for a session of this tab."
        >
          {(ids) => (
            <input
              {...ids}
              class="input mono"
              type="password"
              autocomplete="current-password"
              spellcheck={false}
              data-focus
              value={key.value}
              onInput={(event) => (key.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <p class="soft">
          On the server's machine, <code>dayfly portal</code> prints an address that needs no key.
        </p>
        <Failure of={task.error.value} />
        <footer>
          <Button kind="primary" type="submit" disabled={task.busy.value || key.value.trim() === ""}>
            Log in
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
