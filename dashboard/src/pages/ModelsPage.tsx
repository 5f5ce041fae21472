import { useState } from "preact/hooks";
import { loadModel, models, unloadModel } from "../api/calls";
import { type Failure, toFailure } from "../api/failure";
import type { ModelEntry, ModelList } from "../api/schemas";
import { Await, FailureNotice, Note } from "../components/Notices";
import { useLoad } from "../load";
import { bytes, count, digest, plural } from "../pure/format";

/** The pause until the models are asked for again. */
const poll = (list: ModelList | null) => (list?.models.some(({ state }) => state === "loading" || state === "draining") ? 1500 : 10_000);

export function ModelsPage() {
  const { data, failure, reload } = useLoad(models, [], poll);
  const [refusal, setRefusal] = useState<Failure | null>(null);
  const change = async (action: (id: string) => Promise<unknown>, id: string) => {
    setRefusal(null);
    try {
      const done = action(id);
      setTimeout(reload, 200);
      await done;
    } catch (error) {
      setRefusal(toFailure(error));
    }
    reload();
  };
  return (
    <Await data={data} failure={failure}>
      {(list) => (
        <>
          <FailureNotice failure={refusal} />
          {list.models.length === 0 && <p>No model is configured.</p>}
          <ul class="cards">
            {list.models.map((model) => (
              <li key={model.id}>
                <Model model={model} onLoad={() => change(loadModel, model.id)} onUnload={() => change(unloadModel, model.id)} />
              </li>
            ))}
          </ul>
          <h2>Devices</h2>
          <ul>
            {list.devices.map((device) => (
              <li key={device.name}>
                <code>{device.name}</code>: {bytes(device.memory_used_bytes)} of {bytes(device.memory_budget_bytes)} used
                {device.unavailable && <>; does not answer: {device.unavailable}</>}
              </li>
            ))}
          </ul>
        </>
      )}
    </Await>
  );
}

function Model({ model, onLoad, onUnload }: { model: ModelEntry; onLoad(): void; onUnload(): void }) {
  const facts: [string, string][] = [];
  if (model.architecture) facts.push(["Architecture", `${model.architecture}${model.kind === "masked" ? ", masked" : ""}`]);
  if (model.context) facts.push(["Context", plural(model.context, "token")]);
  if (model.vocab_size) facts.push(["Vocabulary", count(model.vocab_size)]);
  if (model.dtype) facts.push(["Type", `${model.dtype}${model.device ? ` on ${model.device}` : ""}`]);
  if (model.weight_bytes) facts.push(["Weights", bytes(model.weight_bytes)]);
  if (model.reference) facts.push(["Reference", model.reference]);
  if (model.base) facts.push(["Base", model.base]);
  if (model.source) facts.push(["Source", model.source]);
  const { download } = model;
  return (
    <article>
      <h2><code>{model.id}</code></h2>
      <p>
        <span class="status">{model.state}</span>
        {[model.default && "default model", model.resident.length > 0 && `loaded on ${model.resident.join(", ")}`].filter(Boolean).map((fact) => ` ${fact}`).join(",")}
      </p>
      {download && (
        <p>
          <progress aria-label={`Download of ${model.id}`} max={download.total_bytes || undefined} value={download.total_bytes ? download.bytes : undefined} />{" "}
          {bytes(download.bytes)} of {download.total_bytes ? bytes(download.total_bytes) : "an unknown size"}
        </p>
      )}
      {model.reason && <p class="notice fault">{model.reason}</p>}
      <dl class="facts">
        {facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
        {model.digest && <div><dt>Digest</dt><dd><code title={model.digest}>{digest(model.digest)}</code></dd></div>}
      </dl>
      {model.adapters && model.adapters.length > 0 && (
        <>
          <h3>Adapters</h3>
          <ul>{model.adapters.map((adapter) => <li key={adapter.id}><code>{adapter.id}</code> {adapter.state}</li>)}</ul>
        </>
      )}
      <p class="actions">
        {model.state === "ready" && model.kind !== "masked" && <a class="button" href="#/score">Score a text</a>}
        {(model.state === "unloaded" || model.state === "failed") && <button type="button" onClick={onLoad}>Load {model.id}</button>}
        {model.state === "ready" && !model.pinned && model.resident.length > 0 && <button type="button" onClick={onUnload}>Unload {model.id}</button>}
      </p>
      {model.state === "failed" && !model.reason && <Note>Keys with the scope admin are told the reason.</Note>}
    </article>
  );
}
