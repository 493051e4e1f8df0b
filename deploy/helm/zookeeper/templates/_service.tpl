{{/* The service for clients: a dict with the context, name and component. */}}
{{- define "zk.service" -}}
{{- $ := .context -}}
{{- $s := .context.Values.service -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "zk.metadata" (dict "context" $ "name" .name "annotations" $s.annotations "labels" (dict "app.kubernetes.io/component" .component)) | nindent 2 }}
spec:
  type: {{ $s.type }}
  {{- if and $s.clusterIP (eq .component "zookeeper") }}
  clusterIP: {{ $s.clusterIP }}
  {{- end }}
  {{- with $s.sessionAffinity }}
  sessionAffinity: {{ . }}
  {{- end }}
  {{- with $s.sessionAffinityConfig }}
  sessionAffinityConfig:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if ne $s.type "ClusterIP" }}
  externalTrafficPolicy: {{ $s.externalTrafficPolicy }}
  {{- end }}
  {{- if eq $s.type "LoadBalancer" }}
  {{- with $s.loadBalancerIP }}
  loadBalancerIP: {{ . }}
  {{- end }}
  {{- with $s.loadBalancerSourceRanges }}
  loadBalancerSourceRanges:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  selector:
    {{- include "zk.matchLabels" $ | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
  ports:
    {{- if not $s.disableBaseClientPort }}
    - name: tcp-client
      port: {{ $s.ports.client }}
      targetPort: client
      {{- if and (ne $s.type "ClusterIP") $s.nodePorts.client }}
      nodePort: {{ $s.nodePorts.client }}
      {{- end }}
    {{- end }}
    {{- if $.Values.tls.client.enabled }}
    - name: tcp-client-tls
      port: {{ $s.ports.tls }}
      targetPort: client-tls
      {{- if and (ne $s.type "ClusterIP") $s.nodePorts.tls }}
      nodePort: {{ $s.nodePorts.tls }}
      {{- end }}
    {{- end }}
    {{- with $s.extraPorts }}
    {{- include "zk.tpl" (dict "value" . "context" $) | nindent 4 }}
    {{- end }}
{{- end -}}
