import { useEffect, useRef, useState } from "preact/hooks";
import { KEY, answerKeyRequest, askForKey, forgetKey, hasKey, keyRequest } from "../api/key";
import { useObservable } from "../observable";
import { TextField } from "./Fields";

export function KeyDialog() {
  const reason = useObservable(keyRequest);
  const dialog = useRef<HTMLDialogElement>(null);
  // The event of a close comes late, when the dialog may be open again for another reason.
  const closedHere = useRef(false);
  const [entered, setEntered] = useState("");
  useEffect(() => {
    if (reason !== null && !dialog.current?.open) dialog.current?.showModal();
    if (reason === null && dialog.current?.open) {
      closedHere.current = true;
      dialog.current.close();
    }
  }, [reason]);
  const [fault, setFault] = useState(false);
  const answer = (value: string | null) => {
    setEntered("");
    setFault(false);
    answerKeyRequest(value);
  };
  return (
    <dialog ref={dialog} aria-labelledby="key-title" onClose={() => {
      if (!closedHere.current) answer(null);
      closedHere.current = false;
    }}>
      {reason !== null && (
        <form onSubmit={(event) => {
          event.preventDefault();
          const key = entered.trim();
          if (KEY.test(key)) answer(key);
          else setFault(true);
        }}>
          <h2 id="key-title">API key</h2>
          <p>The service asks for a key. It is kept in the memory of this tab until the page is left or reloaded, and is stored nowhere.</p>
          {fault
            ? <p class="notice fault" role="alert">A key has no spaces and no characters beyond ASCII.</p>
            : reason && <p class="notice fault" role="alert">{reason}</p>}
          <TextField label="Key" secret value={entered} onInput={setEntered} placeholder="pdr_…" />
          <p class="actions">
            <button type="submit" class="primary" disabled={entered.trim() === ""}>Use the key</button>
            <button type="button" onClick={() => answer(null)}>Cancel</button>
          </p>
        </form>
      )}
    </dialog>
  );
}

export function KeyButton() {
  const known = useObservable(hasKey);
  return known
    ? <button type="button" class="plain" onClick={forgetKey}>Forget the key</button>
    : <button type="button" class="plain" onClick={() => void askForKey("", true)}>Enter a key</button>;
}
