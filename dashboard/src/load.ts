import { useCallback, useEffect, useState } from "preact/hooks";
import { type Failure, isAbort, toFailure } from "./api/failure";
import { recoveries } from "./api/http";
import { useObservable } from "./observable";

export interface Loaded<T> {
  data: T | null;
  failure: Failure | null;
  reload(): void;
}

/** The answer of `read`, which is called again when `inputs` change, on `reload`, and when the service answers again. The last data stays meanwhile. */
export function useLoad<T>(read: () => Promise<T>, inputs: unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data: T | null; failure: Failure | null }>({ data: null, failure: null });
  const [asked, setAsked] = useState(0);
  const recovered = useObservable(recoveries);
  useEffect(() => {
    let current = true;
    read().then(
      (data) => current && setState({ data, failure: null }),
      (error) => current && !isAbort(error) && setState((before) => ({ data: before.data, failure: toFailure(error) })),
    );
    return () => {
      current = false;
    };
  }, [...inputs, asked, recovered]);
  const reload = useCallback(() => setAsked((count) => count + 1), []);
  return { ...state, reload };
}

/** Runs `action` every so many milliseconds while `active` and the page is visible. */
export function useEvery(milliseconds: number, active: boolean, action: () => void): void {
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") action();
    }, milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds, active, action]);
}
