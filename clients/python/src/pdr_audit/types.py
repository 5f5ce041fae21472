"""The JSON of the service, as far as this package looks into it.

A service that is newer than this package may send more fields; they are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, TypedDict

#: The name of a method, or an object with its parameters, such as
#: ``{"name": "min_k", "k": 0.2, "pdr": {"decay": "linear", "alpha": 1.0}}``.
Method: TypeAlias = str | Mapping[str, Any]
#: The treatment of a text that is longer than the model's context.
Overflow: TypeAlias = Literal["error", "truncate", "window"]
#: Settings of the cut into passages: the most words of a passage, or an object.
CutSettings: TypeAlias = "int | Cut"
ReportFormat: TypeAlias = Literal["html", "json", "dsse"]
ComparisonQuestion: TypeAlias = Literal["retain"]
Passes: TypeAlias = Literal["shared", "separate"]
Status: TypeAlias = Literal["queued", "running", "succeeded", "failed", "cancelled"]


class Cut(TypedDict, total=False):
    """Settings of the cut into passages."""

    words: int
    #: Words of the end of a passage that the next one begins with; at most half of ``words``.
    overlap: int
    #: The unit that a passage holds whole while it fits.
    at: Literal["paragraph", "sentence", "word"]


class _NamedText(TypedDict):
    text: str


class Text(_NamedText, total=False):
    """A text to score with what belongs to it."""

    id: str
    neighbors: list[str]


class Work(_NamedText, total=False):
    """A text to look for in what a model gives back."""

    id: str | int


class ComparedText(_NamedText, total=False):
    """A text of a test of kind ``dataset``."""

    id: str | int
    #: Texts of one document count once.
    document: str | int


class PairedDocument(TypedDict):
    """A published text with rewrites of it that were made at the same time and never published."""

    public: str
    private: list[str]


class Canary(TypedDict):
    """A published text with others of its generator that were not."""

    text: str
    twins: list[str]


class _TestKind(TypedDict):
    kind: Literal["dataset", "di", "paired", "rank", "order"]


class ComparedTexts(_TestKind, total=False):
    """The texts that a test compares; its kind says which fields there are."""

    #: Of ``dataset`` and ``di``: texts that may have been trained on, and texts of the same source that were not.
    suspects: list[str | ComparedText]
    held_out: list[str | ComparedText]
    #: In place of both, the id of a dataset, whose members are the suspects.
    dataset: str
    #: Of ``dataset`` and ``di``: id of a model that has not seen the suspects; None for no control, where the default is the
    #: reference model.
    control: str | None
    #: Of ``dataset`` and ``di``: the way the texts of both lists are cut into passages.
    cut: Cut
    #: Of ``paired``.
    documents: list[PairedDocument]
    #: Of ``rank``.
    canaries: list[Canary]
    #: Of ``order``: the items of each shard in their published order, what stands between two of them, and the random
    #: orders that each shard is compared with.
    shards: list[list[str]]
    separator: str
    shuffles: int
    #: Of ``order`` and ``di``: the seed of these orders, or of the halves of both lists.
    seed: int


class _SampleText(TypedDict):
    text: str


class Sample(_SampleText, total=False):
    """A text of an audit; all samples have a label (1: member, 0: non-member), or none has."""

    id: str | int
    label: int | bool | str
    group: str
    #: Texts of one document count once for standard errors and p-values.
    document: str | int
    neighbors: list[str]
    #: Other columns, which come back with the scores.
    columns: dict[str, Any]


class Bootstrap(TypedDict, total=False):
    replicates: int
    seed: int
    confidence: float


class PositionProfile(TypedDict, total=False):
    by_group: bool
    positions: int | None


class Metrics(TypedDict, total=False):
    """The statistics that an audit reports."""

    fpr_targets: list[float]
    roc: bool
    bootstrap: Bootstrap | None
    average: list[Literal["group"]]
    position_profile: PositionProfile
    selected_tokens: int | None


class CalibrationShare(TypedDict, total=False):
    """A share of an audit's own non-members, against which the others get p-values."""

    share: float
    seed: int


class Decisions(TypedDict, total=False):
    """A list of texts at a false discovery rate."""

    method: str
    fdr: float
    procedure: Literal["bh", "storey", "by"]


class Evidence(TypedDict, total=False):
    """The basis of the verdict of an audit."""

    #: Label or name of the method that the verdict is about.
    primary: str
    #: Id of a model that has not seen the members; None for no control, where the default is the reference model.
    control: str | None
    stratify: Literal["group"]
    #: The share of members among texts like these.
    prior: float
    #: Id of a calibration, or a share of the audit's own non-members.
    calibration: str | CalibrationShare
    decisions: Decisions


class Lora(TypedDict, total=False):
    """The shape of an adapter."""

    rank: int
    alpha: float
    dropout: float
    target_modules: list[str]


#: Greedy continuation of texts.
Continuation = TypedDict(
    "Continuation", {"tokens": int, "from": Literal["most_probable", "start"], "least_words": int}, total=False
)


class Optimizer(TypedDict, total=False):
    """Settings of the tuning of an adapter."""

    learning_rate: float
    warmup_steps: int
    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float
    max_grad_norm: float
    batch_size: int
    epochs: int
    max_length: int


class _TextError(TypedDict):
    code: str
    detail: str


class TextError(_TextError, total=False):
    """The reason for which a text, or one of its methods, has no score."""

    label: str


class _Fault(TypedDict):
    pointer: str
    detail: str


class PointedFault(_Fault, total=False):
    """A fault of a request: a JSON pointer into the body, or the name of the query parameter."""

    parameter: str


class _TextResult(TypedDict):
    index: int
    scored_tokens: int
    truncated: bool
    scores: dict[str, float]
    errors: list[TextError]


class TextResult(_TextResult, total=False):
    """The scores of one text, by the label of the method."""

    id: str
    bos_prepended: bool
    windows: int
    alpha_used: dict[str, float]
    #: Against known non-members, where the request names a calibration.
    p_values: dict[str, float]
    tokens: list[dict[str, Any]]


class _SampleScores(TypedDict):
    index: int
    scored_tokens: int
    truncated: bool
    scores: dict[str, float]
    errors: list[TextError]


class SampleScores(_SampleScores, total=False):
    """The scores of one sample of an audit."""

    id: str | int
    label: int
    group: str
    document: str | int
    windows: int
    alpha_used: dict[str, float]
    #: By the primary method, where the audit states a prior.
    posterior: float
    #: Against known non-members, where the audit has a calibration.
    p_values: dict[str, float]
    #: That of the method that decides, adjusted for the number of texts tested.
    p_value_adjusted: float
    #: True if the text is on the list.
    flagged: bool
    #: Under the control model, where the audit has one.
    control_scores: dict[str, float]
    columns: dict[str, Any]


class TruePositiveRate(TypedDict):
    fpr: float
    tpr: float
    threshold: float | None
    false_positive_budget: int
    interval: list[float]


class _MethodReport(TypedDict):
    label: str
    name: str
    scored: int


class MethodReport(_MethodReport, total=False):
    """The results of one method in an audit; without labels there is no AUROC."""

    auroc: float | None
    auroc_standard_error: float | None
    tpr_at_fpr: list[TruePositiveRate]
    fpr_at_95_tpr: float | None
    bootstrap: dict[str, Any]
    versus_baseline: dict[str, Any]
    #: ``clusters`` of known non-members and the ``resolution`` of p-values, where the audit has a calibration.
    calibration: dict[str, Any]


class _MethodDifference(TypedDict):
    label: str
    scored: int


class MethodDifference(_MethodDifference, total=False):
    """The differences of one method between two audits."""

    auroc_a: float
    auroc_b: float
    delta: float
    standard_error: float
    interval: list[float]
    p_value: float
    bootstrap_interval: list[float]
    #: Without labels: of the scores in b minus those in a.
    mean_difference: float


class _ServedForecast(TypedDict):
    requests: int
    estimated_tokens: int


class ServedForecast(_ServedForecast, total=False):
    """The requests to models that are served elsewhere, as if no cache had anything."""

    #: In the currency of the prices; absent where one of the models has none.
    estimated_cost: float


class _Forecast(TypedDict):
    works: int
    texts: int
    estimated_tokens: int


class Forecast(_Forecast, total=False):
    """What is known of an audit before anything is scored."""

    #: Of a calibration: its works, the smallest p-value that they allow, and the works that one of 0.01 takes.
    known_works: int
    smallest_p: float
    known_works_needed: int
    #: Absent if all models run in the service.
    served: ServedForecast


class _Progress(TypedDict):
    done: int
    total: int


class Progress(_Progress, total=False):
    #: Of an audit, once its samples were first read.
    forecast: Forecast
