import type { TokenDetail } from "../api/schemas";
import type { TokenColumns } from "../score/columns";
import { visible } from "../pure/text";

/** The numbers of one token, so that nothing is told by colour alone. */
export function TokenPanel({ token, index, columns, characters }: { token: TokenDetail; index: number; columns: TokenColumns; characters: string[] }) {
  const [start = 0, end = 0] = token.offset;
  const number = (value: number | null | undefined) => (value == null || Number.isNaN(value) ? "\u2013" : String(value));
  const rows: [string, string][] = [
    ["Token", `${index + 1}, id ${token.id}`],
    ["Characters", `${start} to ${end}: ${visible(characters.slice(start, end).join(""))}`],
    ["lp", number(token.lp)],
    ["mu", number(token.mu)],
    ["sigma", number(token.sigma)],
    ["max lp", number(token.max_lp)],
    ["z", number(columns.z[index])],
    ["Weight", number(columns.weight[index])],
    ["Contribution", number(columns.contribution[index])],
    ["Selected", columns.selected[index] ? "yes" : "no"],
  ];
  return (
    <section class="panel" aria-label="Selected token">
      <h3><code class="piece">{visible(token.text) || "\u2205"}</code></h3>
      {token.lp == null && <p class="faint">Nothing precedes it, so it is never scored.</p>}
      <dl class="facts">
        {rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>
      <details>
        <summary>The numbers of a token</summary>
        <p class="faint">
          lp is the log-probability of the token given all before it, mu and sigma are mean and deviation of the log-probability over the vocabulary
          there, and max lp is that of the model's first choice, in nats; z is (lp − mu) / sigma.
        </p>
      </details>
    </section>
  );
}
