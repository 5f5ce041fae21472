import { memo } from "../memo";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { TokenDetail } from "../api/schemas";
import { visible } from "../pure/text";
import { count } from "../pure/format";
import { STEPS } from "../score/columns";

const PAGE = 2000;

interface Props {
  tokens: TokenDetail[];
  heat: Int8Array;
  selected: boolean[];
  current: number;
  onCurrent(index: number): void;
}

/** The tokens as a list box: coloured by their heat, and walked with the arrow keys. */
export function TokenStrip({ tokens, heat, selected, current, onCurrent }: Props) {
  const strip = useRef<HTMLDivElement>(null);
  const moved = useRef(false);
  const [first, setFirst] = useState(0);
  const start = first < tokens.length ? first : 0;
  const end = Math.min(start + PAGE, tokens.length);

  // Colours change with every move of a slider: they are set on the elements, and the elements stay.
  useLayoutEffect(() => {
    const elements = strip.current!.children;
    for (let index = start; index < end; index++) {
      const element = elements[index - start] as HTMLElement;
      const name = `token${selected[index] ? " selected" : ""}${heat[index]! < 0 ? " below" : heat[index]! > 0 ? " above" : ""}`;
      if (element.className !== name) element.className = name;
      const strength = String(Math.abs(heat[index]!) / STEPS);
      if (element.dataset.heat !== strength) {
        element.dataset.heat = strength;
        element.style.setProperty("--heat", strength);
      }
    }
  }, [tokens, heat, selected, start, end]);

  useLayoutEffect(() => {
    const list = strip.current!;
    list.querySelector('[aria-selected="true"]')?.setAttribute("aria-selected", "false");
    const element = list.children[current - start];
    element?.setAttribute("aria-selected", "true");
    if (moved.current) element?.scrollIntoView({ block: "nearest" });
    moved.current = false;
  }, [tokens, current, start]);

  const move = (to: number) => {
    const index = Math.max(0, Math.min(tokens.length - 1, to));
    if (index < start || index >= end) setFirst(Math.floor(index / PAGE) * PAGE);
    moved.current = true;
    onCurrent(index);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowRight: 1, ArrowDown: 10, ArrowLeft: -1, ArrowUp: -10, PageDown: 100, PageUp: -100 };
    const to = event.key === "Home" ? 0 : event.key === "End" ? tokens.length - 1 : steps[event.key] === undefined ? null : current + steps[event.key]!;
    if (to === null || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move(to);
  };
  const onClick = (event: MouseEvent) => {
    const index = Array.prototype.indexOf.call(strip.current!.children, (event.target as HTMLElement).closest(".token"));
    if (index >= 0) move(start + index);
  };
  return (
    <>
      <div ref={strip} class="tokens" role="listbox" aria-label="Tokens" tabIndex={0} aria-activedescendant={`token-${current}`}
        onKeyDown={onKeyDown} onClick={onClick}>
        <Tokens tokens={tokens} start={start} end={end} />
      </div>
      {tokens.length > PAGE && (
        <p class="actions">
          <button type="button" disabled={start === 0} onClick={() => move(start - PAGE)}>Previous tokens</button>
          <span>{count(start + 1)} to {count(end)} of {count(tokens.length)}</span>
          <button type="button" disabled={end === tokens.length} onClick={() => move(start + PAGE)}>Next tokens</button>
        </p>
      )}
    </>
  );
}

const Tokens = memo(({ tokens, start, end }: { tokens: TokenDetail[]; start: number; end: number }) => (
  <>
    {tokens.slice(start, end).map((token, index) => (
      <span key={start + index} id={`token-${start + index}`} role="option" aria-selected="false" aria-label={token.text.trim() === "" ? "white space" : undefined}>
        {visible(token.text) || "\u2205"}
      </span>
    ))}
  </>
));
