import { useLayoutEffect, useState } from "preact/hooks";

/** A value that components follow. */
export class Observable<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set value(value: T) {
    if (Object.is(value, this.current)) return;
    this.current = value;
    for (const listener of [...this.listeners]) listener();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export function useObservable<T>(observable: Observable<T>): T {
  const [value, setValue] = useState(observable.value);
  useLayoutEffect(() => {
    const take = () => setValue(() => observable.value);
    // It may have changed between the drawing and this subscription.
    take();
    return observable.subscribe(take);
  }, [observable]);
  return value;
}
