// The alerts, the recording rules and the dashboard for those who build theirs with jsonnet (https://monitoring.mixins.dev).
// It reads the files beside this folder, which are also what kustomize and the chart install.
{
  _config+:: {
    // Where you serve docs/, with a slash at its end.
    runbookBase: 'https://zonewise.example/',
    // More labels of every alert, such as { team: 'databases' }.
    alertLabels: {},
  },

  local text = std.strReplace(importstr '../prometheus-rule.yaml', 'https://zonewise.example/', $._config.runbookBase),
  local groups = std.parseYaml(text).spec.groups,
  local hasAlerts(group) = std.objectHas(group.rules[0], 'alert'),

  prometheusAlerts+:: {
    groups+: [
      group { rules: [rule { labels+: $._config.alertLabels } for rule in group.rules] }
      for group in groups
      if hasAlerts(group)
    ],
  },
  prometheusRules+:: {
    groups+: [group for group in groups if !hasAlerts(group)],
  },
  grafanaDashboards+:: {
    'zonewise.json': import '../dashboard.json',
  },
}
