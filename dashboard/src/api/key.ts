import { Observable } from "../observable";

/** Lives as long as the page, and is stored nowhere. */
let key: string | null = null;

/** The reason why a key is asked for; null while none is. */
export const keyRequest = new Observable<string | null>(null);
export const hasKey = new Observable(false);

let waiting: ((entered: boolean) => void)[] = [];

/** Whoever enters none is left alone until another page is opened. */
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

export function answerKeyRequest(entered: string | null): void {
  declined = entered === null;
  if (entered !== null) {
    key = entered === "" ? null : entered;
    hasKey.value = key !== null;
  }
  keyRequest.value = null;
  const resolved = waiting;
  waiting = [];
  for (const resolve of resolved) resolve(entered !== null);
}
