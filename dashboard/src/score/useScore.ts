import { useEffect, useRef, useState } from "preact/hooks";
import { score } from "../api/calls";
import { type Failure, isAbort, toFailure } from "../api/failure";
import type { MethodEntry, ScoreResponse, TokenDetail } from "../api/schemas";
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
 * the page computes the contributions itself, the tokens stay those of the first answer.
 */
export function useScore(settings: Settings, entry: MethodEntry | undefined) {
  const [scored, setScored] = useState<Scored | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [pending, setPending] = useState(false);
  const running = useRef<AbortController | null>(null);

  const ask = async (sent: Sent, details: boolean, known: TokenDetail[]) => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    setPending(true);
    try {
      const answer = await score(
        { model: sent.model, inputs: sent.text, methods: requests(settings, entry), overflow: sent.overflow, details: details ? ["tokens"] : [] },
        controller.signal,
      );
      setScored({ sent, answer, tokens: details ? (answer.results[0]?.tokens ?? []) : known, settings });
      setFailure(null);
    } catch (error) {
      if (isAbort(error)) return;
      setFailure(toFailure(error));
    }
    if (running.current === controller) {
      running.current = null;
      setPending(false);
    }
  };

  const begin = (sent: Sent) => {
    setFailure(null);
    setScored(null);
    void ask(sent, sent.text.length <= DETAILED, []);
  };

  const stale = scored !== null && !sameSettings(scored.settings, settings);
  useEffect(() => {
    if (!stale || !scored) return;
    setPending(true);
    const timer = setTimeout(() => {
      const details = scored.tokens.length > 0 && !isLocal(settings.method);
      void ask(scored.sent, details, scored.tokens);
    }, DELAY);
    return () => clearTimeout(timer);
  }, [settings.method, settings.decay, settings.alpha, settings.k, scored?.sent]);
  useEffect(() => () => running.current?.abort(), []);

  return { scored, failure, pending: pending || (stale && failure === null), begin };
}

function sameSettings(a: Settings, b: Settings): boolean {
  return a.method === b.method && a.decay === b.decay && a.alpha === b.alpha && a.k === b.k;
}
