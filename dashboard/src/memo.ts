import type { VNode } from "preact";
import { useRef } from "preact/hooks";

/** A component that is drawn again only where one of its properties is another value. */
export function memo<P extends object>(draw: (props: P) => VNode): (props: P) => VNode {
  return (props) => {
    const last = useRef<{ props: P; drawn: VNode } | null>(null);
    const before = last.current;
    const same = before !== null && (Object.keys(props) as (keyof P)[]).every((name) => Object.is(before.props[name], props[name]));
    if (!same) last.current = { props, drawn: draw(props) };
    return last.current!.drawn;
  };
}

