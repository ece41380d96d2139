// Grafana's own types as JSON has them: enum members as their text, everything optional, panels by their type.
import type * as schema from '@grafana/schema';
import type * as bargauge from '@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen';
import type * as barchart from '@grafana/schema/dist/esm/raw/composable/barchart/panelcfg/x/BarChartPanelCfg_types.gen';
import type * as gauge from '@grafana/schema/dist/esm/raw/composable/gauge/panelcfg/x/GaugePanelCfg_types.gen';
import type * as heatmap from '@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen';
import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as statetimeline from '@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen';
import type * as statushistory from '@grafana/schema/dist/esm/raw/composable/statushistory/panelcfg/x/StatusHistoryPanelCfg_types.gen';
import type * as table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as text from '@grafana/schema/dist/esm/raw/composable/text/panelcfg/x/TextPanelCfg_types.gen';
import type * as timeseries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
import type * as xychart from '@grafana/schema/dist/esm/raw/composable/xychart/panelcfg/x/XYChartPanelCfg_types.gen';

type Written<T> = T extends string
  ? `${T}`
  : T extends (infer Item)[]
    ? Written<Item>[]
    : T extends object
      ? { [Key in keyof T]?: Written<T[Key]> }
      : T;

// What an override may set: a standard property, or one of the panel's own behind `custom.`.
type Property<Custom> =
  | { [Key in keyof schema.FieldConfig & string]: { id: Key; value?: Written<schema.FieldConfig[Key]> } }[Exclude<keyof schema.FieldConfig & string, 'custom'>]
  | { [Key in keyof Custom & string]: { id: `custom.${Key}`; value?: Written<Custom[Key]> } }[keyof Custom & string];

interface Fields<Custom> {
  defaults: Omit<Written<schema.FieldConfig>, 'custom'> & { custom?: Written<Custom> };
  overrides: { matcher: Written<schema.MatcherConfig>; properties: Property<Custom>[] }[];
}

// A Prometheus query; the data source's own types are not in the package.
interface Target {
  refId: string;
  expr: string;
  datasource: schema.DataSourceRef;
  editorMode: 'code';
  format: 'time_series' | 'table' | 'heatmap';
  instant: boolean;
  range: boolean;
  legendFormat: string;
  hide?: boolean;
  interval?: string;
}

type PanelOf<Type extends string, Options, Custom> = Omit<
  Written<schema.Panel>,
  'type' | 'options' | 'fieldConfig' | 'targets'
> & { id: number; type: Type; options: Written<Options>; fieldConfig: Fields<Custom>; targets?: Target[] };

// The panel reads these two, its published type leaves them out.
type StateTimeline = statetimeline.FieldConfig & Pick<timeseries.FieldConfig, 'spanNulls' | 'insertNulls'>;

export interface Panels {
  bargauge: PanelOf<'bargauge', bargauge.Options, {}>;
  barchart: PanelOf<'barchart', barchart.Options, barchart.FieldConfig>;
  gauge: PanelOf<'gauge', gauge.Options, {}>;
  heatmap: PanelOf<'heatmap', heatmap.Options, heatmap.FieldConfig>;
  stat: PanelOf<'stat', stat.Options, {}>;
  'state-timeline': PanelOf<'state-timeline', statetimeline.Options, StateTimeline>;
  'status-history': PanelOf<'status-history', statushistory.Options, statushistory.FieldConfig>;
  table: PanelOf<'table', table.Options, table.FieldConfig>;
  text: PanelOf<'text', text.Options, {}>;
  timeseries: PanelOf<'timeseries', timeseries.Options, timeseries.FieldConfig>;
  xychart: PanelOf<'xychart', xychart.Options, xychart.FieldConfig>;
  row: Omit<schema.RowPanel, 'panels'> & { panels: never[] };
}

// The panels are checked one by one; what a Prometheus annotation adds is not in the package either.
export type Board = Omit<Written<schema.Dashboard>, 'panels' | 'annotations'> & {
  annotations: {
    list: (Written<schema.AnnotationQuery> & { expr: string; step: string; titleFormat: string; textFormat: string })[];
  };
};
