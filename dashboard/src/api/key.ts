import { Observable } from "../observable";

/** Lives as long as the page, and is stored nowhere. */
let key: string | null = null;

/** The reason why a key is asked for; null while none is. */
export const keyRequest = new Observable<string | null>(null);
export const hasKey = new Observable(false);
/** Counts up where a request that failed may now succeed: another key was entered, or the service answers again. */
export const renewals = new Observable(0);
/** Counts up where a key is forgotten, and with it all that it fetched. */
export const sessions = new Observable(0);

/** Characters that a header can send and a key can have. */
export const KEY = /^[\x21-\x7e]+$/;

let waiting: ((entered: boolean) => void)[] = [];

/** After a dialog that was left without a key none opens by itself until another page is opened. */
let declined = false;
addEventListener("hashchange", () => {
  declined = false;
});

export function currentKey(): string | null {
  return key;
}

/** Asks for a key, once for all requests that wait. Resolves to false where none is entered. */
export function askForKey(reason: string, byHand = false): Promise<boolean> {
  if (declined && !byHand) return Promise.resolve(false);
  keyRequest.value = reason;
  return new Promise((resolve) => waiting.push(resolve));
}

/** Ends the dialog: with a key, or with null where none was entered. */
export function answerKeyRequest(entered: string | null): void {
  declined = entered === null;
  if (entered !== null) {
    key = entered;
    hasKey.value = true;
    renewals.value++;
  }
  keyRequest.value = null;
  const resolved = waiting;
  waiting = [];
  for (const resolve of resolved) resolve(entered !== null);
}

export function forgetKey(): void {
  key = null;
  declined = true;
  hasKey.value = false;
  sessions.value++;
}
