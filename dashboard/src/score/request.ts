import type { MethodEntry, MethodRequest, Overflow } from "../api/schemas";
import { takesK } from "../pure/methods";
import type { Decay } from "../pure/decay";

export interface Settings {
  method: string;
  decay: Decay | null;
  alpha: number;
  k: number;
}

/** A text that was sent, and what it was sent with. */
export interface Sent {
  text: string;
  model: string;
  overflow: Overflow;
}

/** The method of the settings, then the same without weights where it has some. */
export function requests(settings: Settings, entry: MethodEntry | undefined): MethodRequest[] {
  const plain: Exclude<MethodRequest, string> = { name: settings.method };
  if (entry && takesK(entry)) plain.k = settings.k;
  return settings.decay === null ? [plain] : [{ ...plain, pdr: { decay: settings.decay, alpha: settings.alpha } }, plain];
}
