import type { Calibration } from "../api/schemas";
import { count, short } from "../pure/format";
import { visible } from "../pure/text";

export function CalibrationFacts({ calibration }: { calibration: Calibration }) {
  return (
    <>
      <h2>Known texts</h2>
      <p>{count(calibration.texts)} texts{calibration.clusters != null && `, ${count(calibration.clusters)} clusters of them`}.</p>
      <div class="wide" tabIndex={0} role="region" aria-label="Methods of the calibration">
        <table>
          <thead>
            <tr><th scope="col">Method</th><th scope="col" class="number-cell">Texts</th><th scope="col" class="number-cell">Clusters</th><th scope="col" class="number-cell">Smallest p-value</th></tr>
          </thead>
          <tbody>
            {calibration.methods.map((method) => (
              <tr key={method.label}>
                <th scope="row"><code>{visible(method.label)}</code></th>
                <td class="number-cell">{method.size ?? "\u2013"}</td>
                <td class="number-cell">{method.clusters ?? "\u2013"}</td>
                <td class="number-cell">{short(method.resolution)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
