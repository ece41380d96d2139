// Every knob of the mixin. Override with `(import 'mixin.libsonnet') + { _config+:: { ... } }`.
local catalogue = import 'catalogue.json';

{
  _config+:: {
    local config = self,

    // Scrape jobs that hold vLLM servers.
    vllmSelector: 'job=~".*vllm.*"',

    // How vLLM's names begin in this Prometheus: `vllm:`, or `vllm_` (escaped on the way), `ray_vllm_`, `ray_vllm:` (Ray
    // Serve). A scrape config that brings all of them to `vllm:`, as stack/prometheus.yml does, keeps the rules small;
    // with several prefixes here every rule reads every one of them. Older names (gpu_cache_usage_perc and the like) are read
    // in any case.
    metricPrefixes: ['vllm:'],

    // Scrape job of the exporter.
    tidegaugeSelector: 'job="tidegauge"',

    // The native label that tells one vLLM endpoint from another; it becomes `backend`. `pod` on Kubernetes. The
    // exporter's names for its backends must be the values of this label, else a server appears under both.
    backendLabel: 'instance',

    // A label that tells clusters apart, kept by every rule and alert: `cluster` where one Prometheus, Thanos or Mimir holds
    // several. Empty: there is none.
    clusterLabel: '',

    // Window of the stage means, shares and request counts that come from vLLM's own series, where no exporter covers
    // the backend. At least two scrape intervals, as for the windows of 2m and 5m that recorded names carry.
    stageWindow: '15m',

    // Defaults with their meaning are in the catalogue (docs/metrics.md): min_requests, bimodal_late_low,
    // bimodal_late_high, bimodal_split, page_impact, skew.
    thresholds: catalogue.thresholds,

    // From where on an alert speaks, where nothing but the alert needs to know.
    limits: {
      preemptions_per_minute: 1,
      // A prefix hit below this part of what it was over `prefixMemory`, if it was worth mentioning then.
      prefix_drop: 0.5,
      prefix_floor: 0.1,
      // Requests that wait for one cause, on average over 5 minutes; in all, the bottleneck level `scheduling` begins there.
      waiting_requests: catalogue.limits.waiting_requests,
      // Share of the requests that are refused from which it pages; refusals within 5 minutes that are worth a ticket.
      refused: 0.05,
      refused_requests: 5,
      // Share of the requests that leave without an answer.
      aborted: 0.1,
      // Share of a request's time in no stage of the engine: 1 to 8 % where all is well, most under bursts.
      unaccounted: 0.2,
      // Seconds of a request, that lie in no stage or between two backends: fewer are not worth a warning, whatever their share.
      worth_seconds: 0.1,
      // P99 of arrivals per second over their mean, and the arrivals in such a second. Even streams stay far below.
      burst: 10,
      burst_arrivals: 5,
      // Lowest bucket edge over the mean end-to-end time.
      edge_share: 0.5,
      // Share of the exporter's polls of a backend.
      failed_polls: 0.1,
    },

    // How long a server may load its model. Until then one that is new is not missed: not for being out of reach, and not for
    // a page without vLLM's series.
    loadingTime: '15m',

    // What a prefix hit is compared with.
    prefixMemory: '1d',

    // How many times too fast an error budget burns over both windows before it pages or writes a ticket. 14.4 takes 2 % of
    // a month's budget in an hour, 6 takes 5 % in six hours, 3 takes 10 % in a day, 1 the whole in a month.
    burnRates: catalogue.burn_rates,

    // Cuts for which the gain ceiling of each stage is recorded: what an optimisation removes of the stage.
    cuts: ['0.25', '0.5'],

    // Targets and objectives of the three service levels: the share `objective` of the requests is to be within `seconds`.
    // A target is judged at the nearest of `edges` at or below it; these are vLLM's defaults, to be replaced where servers
    // were started with buckets of their own.
    slo: {
      ttft: {
        seconds: 1,
        objective: 0.95,
        edges: [
          0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
        ],
      },
      tpot: {
        seconds: 0.05,
        objective: 0.95,
        edges: [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80],
      },
      e2e: {
        seconds: 30,
        objective: 0.95,
        edges: [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680],
      },
    },

    // Models with targets of their own: { 'Qwen/Qwen2.5-7B': { ttft: { seconds: 2.5 }, e2e: { objective: 0.99 } } }.
    sloByModel: {},

    // GPU figures of DCGM's exporter, where it is scraped. `label` names the GPU's place on its series; `backendPattern`
    // takes the same out of `backend`: the host before the port, or with backendLabel 'pod' and label 'pod' the whole: '(.*)'.
    // Compute bound from `busy` of SM time on; its GPUs compute unevenly beyond a difference of `spread`; up to `idle` a GPU did
    // nothing and does not count; and when memory is less busy than `dramLow`, busy SMs are not computing.
    gpu: catalogue.gpu {
      selector: '',
      label: 'Hostname',
      backendPattern: '([^:]+)(?::[0-9]+)?',
    },

    // How long a condition must hold before the alert fires.
    holds: {
      // The figures behind these already cover a window of minutes: the window is the smoothing, and a longer hold would only
      // delay the page. It still outlasts a single bad scrape or evaluation.
      VllmQueueTimeBimodal: '1m',
      VllmQueueSaturated: '5m',
      // On top of the two minutes in which nothing moved.
      VllmAdmissionStalled: '1m',
      VllmBackendSkew: '10m',
      VllmBackendDown: '1m',
      VllmServesNothing: '5m',
      VllmKVCacheSaturated: '2m',
      VllmPreempting: '5m',
      VllmPrefixHitDropped: '15m',
      VllmPrefillBudgetBound: '5m',
      VllmSequenceSlotsBound: '5m',
      VllmAdmissionRejections: '2m',
      VllmRequestsAborted: '5m',
      VllmUnaccountedLatencyHigh: '10m',
      VllmCallerCeilingClips: '5m',
      VllmCallerCeilingInert: '30m',
      VllmHealthyCountMismatch: '5m',
      VllmDuplicateBackends: '5m',
      VllmBurstArrivals: '10m',
      VllmComputeBound: '10m',
      VllmFalseComputeBound: '10m',
      VllmCommunicationImbalance: '10m',
      TidegaugeDown: '2m',
      // On top of the five minutes without a configuration that could be used: a file may be written in several steps.
      TidegaugeConfigReloadFailed: '1m',
      TidegaugeNativeMetricsMissing: config.loadingTime,
      TidegaugeNativeMetricsEscaped: '5m',
      TidegaugePhaseEdgesCoarse: '30m',
      // A startup log is gigabytes long at times.
      TidegaugeCapacityUnknown: '15m',
      TidegaugeKVSourcesDisagree: '5m',
      // Longer than the average behind it remembers an outage.
      TidegaugeBackendFailing: '6m',
    },

    // An exporter that was scraped within this time and is no longer known to Prometheus is missing. Without an exporter in
    // that time, the rules assume that there is none.
    exporterMemory: '1d',

    // The PrometheusRule object. Its labels must be those that the Prometheus object selects rules by; a namespace is left to
    // the tool that applies it unless one is given.
    kubernetes: {
      name: 'tidegauge',
      namespace: '',
      labels: { 'app.kubernetes.io/name': 'tidegauge', 'app.kubernetes.io/component': 'rules' },
    },

    // Where the pages of docs/runbooks are published; by default the exporter serves them.
    runbookBaseUrl: catalogue.addresses.runbooks,

    // Grafana, and the uid of each board that alerts link to.
    dashboardBaseUrl: catalogue.addresses.grafana,
    dashboards: catalogue.boards,
  },
}
