// Every knob of the mixin. Override with `(import 'mixin.libsonnet') + { _config+:: { ... } }`.
local catalogue = import 'catalogue.json';

{
  _config+:: {
    // Scrape jobs that hold vLLM servers. The rules read vLLM's names as `vllm:x`; stack/prometheus.yml shows how a scrape
    // config brings every other spelling to that one.
    vllmSelector: 'job=~".*vllm.*"',

    // Scrape job of the exporter.
    tidegaugeSelector: 'job="tidegauge"',

    // The native label that tells one vLLM endpoint from another; it becomes `backend`. `pod` on Kubernetes. The
    // exporter's names for its backends must be the values of this label, else a server appears under both.
    backendLabel: 'instance',

    // Window of the stage means, shares and request counts that come from vLLM's own series, where no exporter covers
    // the backend. At least two scrape intervals, as for the windows of 2m and 5m that recorded names carry.
    stageWindow: '15m',

    // Defaults with their meaning are in the catalogue (docs/metrics.md): min_requests, bimodal_late_low,
    // bimodal_late_high, bimodal_split, page_impact, skew.
    thresholds: catalogue.thresholds,

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
      TidegaugeDown: '2m',
    },

    // An exporter that was scraped within this time and is no longer known to Prometheus is missing. Without an exporter in
    // that time, the rules assume that there is none.
    exporterMemory: '1d',

    // Where the pages of docs/runbooks are published; by default their path in the repository.
    runbookBaseUrl: 'docs/runbooks',

    // Grafana, and the uid of the board that each alert links to.
    dashboardBaseUrl: 'http://127.0.0.1:3000',
    dashboards: {
      latency: 'tidegauge-latency',
    },
  },
}
