import { useCallback, useEffect, useState } from "preact/hooks";
import type { Page } from "./api/calls";
import { type Failure, toFailure } from "./api/failure";
import { renewals } from "./api/key";
import { useObservable } from "./observable";

export interface Loaded<T> {
  data: T | null;
  failure: Failure | null;
  reload(): void;
}

/**
 * The answer of `read`, which is called again when `inputs` change, on `reload`, and where a renewal may bring it. With `pause` it is
 * called again so many milliseconds after each answer while the page is visible. The last data stays meanwhile.
 */
export function useLoad<T>(read: (signal: AbortSignal) => Promise<T>, inputs: unknown[], pause?: (data: T | null) => number): Loaded<T> {
  const [state, setState] = useState<{ data: T | null; failure: Failure | null }>({ data: null, failure: null });
  const [asked, setAsked] = useState(0);
  const renewed = useObservable(renewals);
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      let data: T | null = null;
      try {
        data = await read(signal);
        if (signal.aborted) return;
        setState({ data, failure: null });
      } catch (error) {
        if (signal.aborted) return;
        setState((before) => ({ data: before.data, failure: toFailure(error) }));
      }
      if (pause) wait(pause(data));
    };
    const wait = (milliseconds: number) => {
      timer = setTimeout(() => (document.visibilityState === "visible" ? void ask() : wait(milliseconds)), milliseconds);
    };
    void ask();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [...inputs, asked, renewed]);
  const reload = useCallback(() => setAsked((count) => count + 1), []);
  return { ...state, reload };
}

export interface Pages<T> extends Loaded<T[]> {
  /** Reads the next page; null where there is none. */
  more: (() => void) | null;
  busy: boolean;
}

/** A list that comes in pages: the first one as by `useLoad`, and further ones as they are asked for. */
export function usePages<T extends { id: string }>(
  read: (after: string | undefined, signal: AbortSignal) => Promise<Page<T>>,
  pause?: (list: T[]) => number,
): Pages<T> {
  const first = useLoad((signal) => read(undefined, signal), [], pause && ((page) => pause(page?.list ?? [])));
  const [further, setFurther] = useState<Page<T> | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const controller = useUnmounting();
  const next = (further ?? first.data)?.next;
  const later = further?.list ?? [];
  const more = async () => {
    setBusy(true);
    setFailure(null);
    try {
      const page = await read(next ?? undefined, controller.signal);
      setFurther({ list: [...later, ...page.list], next: page.next });
    } catch (error) {
      if (!controller.signal.aborted) setFailure(toFailure(error));
    }
    setBusy(false);
  };
  const items = new Map<string, T>();
  for (const item of [...(first.data?.list ?? []), ...later]) if (!items.has(item.id)) items.set(item.id, item);
  return {
    data: first.data && [...items.values()],
    failure: first.failure ?? failure,
    reload: first.reload,
    more: next ? () => void more() : null,
    busy,
  };
}

/** A controller that is aborted when the component goes. */
export function useUnmounting(): AbortController {
  const [controller] = useState(() => new AbortController());
  useEffect(() => () => controller.abort(), [controller]);
  return controller;
}
