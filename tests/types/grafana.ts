// Grafana's own types as JSON has them: enum members as their text, everything optional, panels by their type.
import type * as schema from '@grafana/schema';
import type * as heatmap from '@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen';
import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as statetimeline from '@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen';
import type * as table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as text from '@grafana/schema/dist/esm/raw/composable/text/panelcfg/x/TextPanelCfg_types.gen';
import type * as timeseries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

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

// Any text is an id of a matcher or a transformation in the package. These are part of every Grafana from 10.4 to 13.
interface Matcher {
  id: 'byName' | 'byRegexp' | 'byType';
  options: string;
}

type Flags = Record<string, boolean>;

type Transformation =
  | { id: 'merge'; options: Record<string, never> }
  | { id: 'organize'; options: { excludeByName: Flags; indexByName: Record<string, number>; renameByName: Record<string, string> } }
  | { id: 'sortBy'; options: { sort: { field: string; desc?: boolean }[] } };

interface Fields<Custom> {
  defaults: Omit<Written<schema.FieldConfig>, 'custom'> & { custom?: Written<Custom> };
  overrides: { matcher: Matcher; properties: Property<Custom>[] }[];
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
  'type' | 'options' | 'fieldConfig' | 'targets' | 'transformations'
> & {
  id: number;
  type: Type;
  options: Written<Options>;
  fieldConfig: Fields<Custom>;
  targets?: Target[];
  transformations: Transformation[];
};

export interface Panels {
  heatmap: PanelOf<'heatmap', heatmap.Options, heatmap.FieldConfig>;
  stat: PanelOf<'stat', stat.Options, {}>;
  'state-timeline': PanelOf<'state-timeline', statetimeline.Options, statetimeline.FieldConfig>;
  table: PanelOf<'table', table.Options, table.FieldConfig>;
  text: PanelOf<'text', text.Options, {}>;
  timeseries: PanelOf<'timeseries', timeseries.Options, timeseries.FieldConfig>;
  row: Omit<schema.RowPanel, 'panels'> & { panels: never[] };
}

// The panels are checked one by one; what a Prometheus annotation and a variable of type adhoc add is not in the package either.
export type Board = Omit<Written<schema.Dashboard>, 'panels' | 'annotations' | 'templating'> & {
  templating: { list: (Written<schema.VariableModel> & { filters?: never[] })[] };
  annotations: {
    list: (Written<schema.AnnotationQuery> & { expr: string; step: string; titleFormat: string; textFormat: string })[];
  };
};
