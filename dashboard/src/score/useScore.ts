import { useEffect, useRef, useState } from "preact/hooks";
import { score } from "../api/calls";
import { type Failure, toFailure } from "../api/failure";
import { renewals } from "../api/key";
import type { MethodEntry, ScoreResponse, TokenDetail } from "../api/schemas";
import { useObservable } from "../observable";
import { isLocal } from "../pure/scores";
import { type Sent, type Settings, requests } from "./request";

export interface Scored {
  sent: Sent;
  answer: ScoreResponse;
  tokens: TokenDetail[];
  /** The settings that `answer` is of. */
  settings: Settings;
}

/** Longer texts, in UTF-16 units, are scored without the details of their tokens. */
export const DETAILED = 64 * 1024;
const DELAY = 100;

/**
 * The score of a text by the service. Once a text is scored, other settings are asked for by themselves, and the last ones win; where
 * the page computes the contributions itself, the tokens stay those of the first answer. `pending` while there is no answer of the
 * settings, `asking` while one is under way or about to be.
 */
export function useScore(settings: Settings, entry: MethodEntry | undefined) {
  const [scored, setScored] = useState<Scored | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [running, setRunning] = useState(false);
  const controller = useRef<AbortController | null>(null);
  const renewed = useObservable(renewals);

  const stop = () => {
    controller.current?.abort();
    setRunning(false);
    setFailure(null);
  };
  const ask = async (sent: Sent, details: boolean, known: TokenDetail[]) => {
    stop();
    const { signal } = (controller.current = new AbortController());
    setRunning(true);
    try {
      const answer = await score(
        { model: sent.model, inputs: sent.text, methods: requests(settings, entry), overflow: sent.overflow, details: details ? ["tokens"] : [] },
        signal,
      );
      if (signal.aborted) return;
      setScored({ sent, answer, tokens: details ? (answer.results[0]?.tokens ?? []) : known, settings });
    } catch (error) {
      if (signal.aborted) return;
      setFailure(toFailure(error));
    }
    setRunning(false);
  };

  const begin = (sent: Sent) => {
    setScored(null);
    void ask(sent, sent.text.length <= DETAILED, []);
  };

  const stale = scored !== null && !sameSettings(scored.settings, settings);
  useEffect(() => {
    if (!scored) return;
    stop();
    if (!stale) return;
    const timer = setTimeout(() => {
      const details = scored.tokens.length > 0 && !isLocal(settings.method);
      void ask(scored.sent, details, scored.tokens);
    }, DELAY);
    return () => clearTimeout(timer);
  }, [settings.method, settings.decay, settings.alpha, settings.k, scored?.sent, stale, renewed]);
  useEffect(() => () => controller.current?.abort(), []);

  return { scored, failure, pending: running || stale, asking: running || (stale && failure === null), begin };
}

function sameSettings(a: Settings, b: Settings): boolean {
  return a.method === b.method && a.decay === b.decay && a.alpha === b.alpha && a.k === b.k;
}
