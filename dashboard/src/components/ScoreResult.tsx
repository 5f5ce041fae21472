import { useMemo, useState } from "preact/hooks";
import { plural } from "../pure/format";
import { type View, VIEWS, heat, tokenColumns } from "../score/columns";
import type { Settings } from "../score/request";
import type { Scored } from "../score/useScore";
import { visible } from "../pure/text";
import { TokenPanel } from "./TokenPanel";
import { TokenStrip } from "./TokenStrip";

interface Props {
  scored: Scored;
  settings: Settings;
  /** True while the answer is of other settings. */
  pending: boolean;
  asking: boolean;
}

export function ScoreResult({ scored, settings, pending, asking }: Props) {
  const { answer, tokens } = scored;
  const [view, setView] = useState<View>("contribution");
  const [current, setCurrent] = useState(1);
  const result = answer.results[0];
  const method = answer.methods[0];
  const plain = answer.methods[1];
  const columns = useMemo(
    () => tokenColumns(tokens, settings, method?.label),
    [tokens, settings.method, settings.decay, settings.alpha, settings.k, method?.label],
  );
  const characters = useMemo(() => (tokens.length > 0 ? Array.from(scored.sent.text) : []), [tokens, scored.sent]);
  const levels = useMemo(() => heat(columns[view]), [columns, view]);
  if (!result || !method) return null;
  const index = Math.min(current, tokens.length - 1);
  const value = result.scores[method.label];
  return (
    <section aria-labelledby="score-title">
      <h2 id="score-title">Score</h2>
      <div class="score" aria-live="polite" aria-busy={asking}>
        <p class={pending ? "number pending" : "number"}>
          <output data-score>{value ?? "none"}</output> <code>{visible(method.label)}</code>
        </p>
        {plain && <p>Without weights <data value={result.scores[plain.label] ?? ""}>{result.scores[plain.label] ?? "none"}</data></p>}
        <p class="faint">
          {pending
            ? <>{asking ? "Asking the service …" : "This number is of earlier settings; the service has not answered for these."}
              {columns.score !== null && <> Computed here: {columns.score.toPrecision(8)}.</>}</>
            : <>{plural(answer.usage.forward_passes, "forward pass", "forward passes")} for this number,{" "}
              {answer.usage.cached_passes} from the cache. A higher score means that the model finds the text more familiar; it is neither a
              probability nor a verdict.</>}
        </p>
      </div>
      <p>
        {plural(result.scored_tokens, "scored token")} under <code>{answer.model.id}</code>
        {result.truncated && "; the text is cut off at the context of the model"}
        {result.windows ? `; read in ${plural(result.windows, "window")}` : ""}
        {method.extension && "; a combination beyond the paper"}
        {method.note && `; ${method.note}`}
      </p>
      {result.errors.length > 0 && (
        <div class="notice fault" role="alert">
          <ul>{result.errors.map((error, at) => <li key={at}>{error.label && <code>{visible(error.label)}</code>} {error.code}: {visible(error.detail)}</li>)}</ul>
        </div>
      )}
      {tokens.length > 0 && (
        <>
          <fieldset class="choices">
            <legend>Colour by</legend>
            {VIEWS.map((name) => (
              <label key={name} class="check">
                <input type="radio" name="view" value={name} checked={view === name} onChange={() => setView(name)} />
                <span>{name}</span>
              </label>
            ))}
          </fieldset>
          <p class="faint">
            <span class="token below" data-legend>below zero</span> <span class="token above" data-legend>above zero</span>, the stronger the farther
            from it{settings.method !== "loss" && <>; <span class="token selected">underlined</span>: selected by the method</>}.
            {columns.fromAnswer && " The contributions are those of the last answer."} The arrow keys walk through the tokens.
          </p>
          <div class="strip">
            <TokenStrip tokens={tokens} heat={levels} selected={columns.selected} current={index} onCurrent={setCurrent} />
            {tokens[index] && <TokenPanel token={tokens[index]} index={index} columns={columns} characters={characters} />}
          </div>
        </>
      )}
    </section>
  );
}
