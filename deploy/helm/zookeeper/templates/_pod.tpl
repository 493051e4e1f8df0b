{{/*
A StatefulSet of servers: a dict with the context, name, component ("zookeeper" as in
Bitnami's chart, or "zookeeper-observer"), replicas, and set, the values of this StatefulSet.
*/}}
{{- define "zk.statefulset" -}}
{{- $ := .context -}}
{{- $v := .context.Values -}}
{{- $set := .set -}}
{{- $matchLabels := printf "%s\napp.kubernetes.io/component: %s" (include "zk.matchLabels" $) .component -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  {{- include "zk.metadata" (dict "context" $ "name" .name "labels" (dict "app.kubernetes.io/component" .component)) | nindent 2 }}
spec:
  replicas: {{ .replicas }}
  revisionHistoryLimit: {{ $v.revisionHistoryLimit }}
  # All pods at once, because an ensemble forms of all its servers. An update still goes one pod
  # at a time, and waits until each is ready.
  podManagementPolicy: {{ $v.podManagementPolicy }}
  minReadySeconds: {{ $v.minReadySeconds }}
  serviceName: {{ include "zk.headless" $ }}
  {{- with $v.updateStrategy }}
  updateStrategy:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  selector:
    matchLabels:
      {{- $matchLabels | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "zk.labels" $ | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
        {{- with $v.podLabels }}
        {{- include "zk.tpl" (dict "value" . "context" $) | nindent 8 }}
        {{- end }}
      annotations:
        checksum/configuration: {{ include (print $.Template.BasePath "/configmap.yaml") $ | sha256sum }}
        {{- with $v.podAnnotations }}
        {{- include "zk.tpl" (dict "value" . "context" $) | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "zk.serviceAccount" $ }}
      automountServiceAccountToken: false
      enableServiceLinks: {{ $v.enableServiceLinks }}
      terminationGracePeriodSeconds: {{ $v.terminationGracePeriodSeconds }}
      {{- include "zk.pullSecrets" $ | nindent 6 }}
      {{- with $v.hostAliases }}
      hostAliases:
        {{- include "zk.tpl" (dict "value" . "context" $) | nindent 8 }}
      {{- end }}
      affinity:
        {{- if $set.affinity }}
        {{- include "zk.tpl" (dict "value" $set.affinity "context" $) | nindent 8 }}
        {{- else }}
        {{- include "zk.affinity" (dict "labels" $matchLabels "values" $v) | nindent 8 }}
        {{- end }}
      {{- with $set.nodeSelector }}
      nodeSelector:
        {{- include "zk.tpl" (dict "value" . "context" $) | nindent 8 }}
      {{- end }}
      {{- with $set.tolerations }}
      tolerations:
        {{- include "zk.tpl" (dict "value" . "context" $) | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        {{- if $set.topologySpreadConstraints }}
        {{- include "zk.tpl" (dict "value" $set.topologySpreadConstraints "context" $) | nindent 8 }}
        {{- else }}
        - topologyKey: topology.kubernetes.io/zone
          maxSkew: 1
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- $matchLabels | nindent 14 }}
        {{- end }}
      {{- with $v.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $v.schedulerName }}
      schedulerName: {{ . }}
      {{- end }}
      {{- with $v.dnsPolicy }}
      dnsPolicy: {{ . }}
      {{- end }}
      {{- with $v.dnsConfig }}
      dnsConfig:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if $v.podSecurityContext.enabled }}
      securityContext:
        {{- include "zk.security" (dict "context" $ "values" $v.podSecurityContext) | nindent 8 }}
      {{- end }}
      {{- with $v.initContainers }}
      initContainers:
        {{- include "zk.tpl" (dict "value" . "context" $) | nindent 8 }}
      {{- end }}
      containers:
        - name: zookeeper
          image: {{ include "zk.image" $ }}
          imagePullPolicy: {{ $v.image.pullPolicy }}
          {{- if $v.containerSecurityContext.enabled }}
          securityContext:
            {{- include "zk.security" (dict "context" $ "values" $v.containerSecurityContext) | nindent 12 }}
          {{- end }}
          {{- if not (or (empty $v.command) (eq (toJson $v.command) "[\"/scripts/setup.sh\"]")) }}
          command:
            {{- include "zk.tpl" (dict "value" $v.command "context" $) | nindent 12 }}
          {{- end }}
          args:
            {{- if $v.args }}
            {{- include "zk.tpl" (dict "value" $v.args "context" $) | nindent 12 }}
            {{- else }}
            - container
            - --statefulset={{ include "zk.fullname" $ }}
            - --domain={{ include "zk.domain" $ }}
            - --server-ports={{ $v.containerPorts.follower }}:{{ $v.containerPorts.election }};{{ $v.containerPorts.client }}
            - --first-id={{ $v.minServerId }}
            - --first-observer-id={{ $v.observers.minServerId }}
            - --super-password-file=/secrets/super/super-password
            - --leave-within={{ sub (int $v.terminationGracePeriodSeconds) 15 }}s
            - --log-format=json
            - --log-level={{ get (dict "TRACE" "debug" "DEBUG" "debug" "INFO" "info" "WARN" "warn" "ERROR" "error") (upper $v.logLevel) }}
            - --extra=/config/zoo.cfg
            {{- if $v.existingConfigmap }}
            - --extra=/config-existing/zoo.cfg
            {{- end }}
            {{- end }}
          env:
            - {name: ZOO_CONF_DIR, value: /conf}
            - {name: ZOO_DATA_DIR, value: /bitnami/zookeeper/data}
            - {name: ZOO_DATA_LOG_DIR, value: {{ default "/bitnami/zookeeper/data" $v.dataLogDir | quote }}}
            - {name: ZOO_TICK_TIME, value: {{ $v.tickTime | quote }}}
            - {name: ZOO_INIT_LIMIT, value: {{ $v.initLimit | quote }}}
            - {name: ZOO_SYNC_LIMIT, value: {{ $v.syncLimit | quote }}}
            - {name: ZOO_MAX_CLIENT_CNXNS, value: {{ $v.maxClientCnxns | quote }}}
            - {name: ZOO_4LW_COMMANDS_WHITELIST, value: {{ $v.fourlwCommandsWhitelist | replace " " "" | quote }}}
            - {name: ZOO_AUTOPURGE_PURGEINTERVAL, value: {{ $v.autopurge.purgeInterval | quote }}}
            - {name: ZOO_AUTOPURGE_SNAPRETAINCOUNT, value: {{ $v.autopurge.snapRetainCount | quote }}}
            {{- with $v.jvmFlags }}
            - {name: SERVER_JVMFLAGS, value: {{ . | quote }}}
            {{- end }}
            {{- if $v.auth.client.enabled }}
            - {name: ZOO_SERVER_USERS, value: {{ $v.auth.client.serverUsers | quote }}}
            - {name: ZOO_SERVER_PASSWORDS_FILE, value: /secrets/client/server-password}
            {{- end }}
            {{- if $v.auth.quorum.enabled }}
            - {name: ZOO_QUORUM_SERVER_USERS, value: {{ $v.auth.quorum.serverUsers | quote }}}
            - {name: ZOO_QUORUM_SERVER_PASSWORDS_FILE, value: /secrets/quorum/quorum-server-password}
            - {name: ZOO_QUORUM_LEARNER_USER, value: {{ $v.auth.quorum.learnerUser | quote }}}
            - {name: ZOO_QUORUM_LEARNER_PASSWORD_FILE, value: /secrets/quorum/quorum-learner-password}
            {{- end }}
            {{- with $v.extraEnvVars }}
            {{- include "zk.tpl" (dict "value" . "context" $) | nindent 12 }}
            {{- end }}
          {{- if or $v.extraEnvVarsCM $v.extraEnvVarsSecret }}
          envFrom:
            {{- with $v.extraEnvVarsCM }}
            - configMapRef: {name: {{ tpl . $ }}}
            {{- end }}
            {{- with $v.extraEnvVarsSecret }}
            - secretRef: {name: {{ tpl . $ }}}
            {{- end }}
          {{- end }}
          ports:
            - {name: client, containerPort: {{ $v.containerPorts.client }}}
            {{- if $v.tls.client.enabled }}
            - {name: client-tls, containerPort: {{ $v.containerPorts.tls }}}
            {{- end }}
            - {name: follower, containerPort: {{ $v.containerPorts.follower }}}
            - {name: election, containerPort: {{ $v.containerPorts.election }}}
            - {name: http-admin, containerPort: {{ $v.containerPorts.adminServer }}}
            {{- if $v.metrics.enabled }}
            - {name: metrics, containerPort: {{ $v.containerPorts.metrics }}}
            {{- end }}
          # Ready is a server that serves clients. A server that waits for the others is alive,
          # because a restart would not help.
          {{- range $kind, $path := dict "startupProbe" "/livez" "livenessProbe" "/livez" "readinessProbe" "/readyz" }}
          {{- $custom := get $v (printf "custom%s%s" (substr 0 1 $kind | upper) (substr 1 -1 $kind)) }}
          {{- $shell := include "zk.shell" $custom }}
          {{- if and $custom (not $shell) }}
          {{ $kind }}:
            {{- include "zk.tpl" (dict "value" $custom "context" $) | nindent 12 }}
          {{- else if or $shell (get $v $kind).enabled }}
          {{ $kind }}:
            {{- include "zk.probe" (dict "context" $ "probe" (get $v $kind) "path" $path) | nindent 12 }}
          {{- end }}
          {{- end }}
          {{- with $v.lifecycleHooks }}
          lifecycle:
            {{- include "zk.tpl" (dict "value" . "context" $) | nindent 12 }}
          {{- end }}
          resources:
            {{- include "zk.resources" (dict "resources" $set.resources "resourcesPreset" $v.resourcesPreset) | nindent 12 }}
          volumeMounts:
            - {name: data, mountPath: /bitnami/zookeeper}
            {{- if $v.dataLogDir }}
            - {name: data-log, mountPath: {{ $v.dataLogDir }}}
            {{- end }}
            - {name: conf, mountPath: /conf}
            - {name: tmp, mountPath: /tmp}
            - {name: config, mountPath: /config, readOnly: true}
            {{- if $v.existingConfigmap }}
            - {name: config-existing, mountPath: /config-existing, readOnly: true}
            {{- end }}
            - {name: api-access, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
            - {name: super, mountPath: /secrets/super, readOnly: true}
            {{- if $v.auth.client.enabled }}
            - {name: client-auth, mountPath: /secrets/client, readOnly: true}
            {{- end }}
            {{- if $v.auth.quorum.enabled }}
            - {name: quorum-auth, mountPath: /secrets/quorum, readOnly: true}
            {{- end }}
            {{- range $port := list "client" "quorum" }}
            {{- if (get $v.tls $port).enabled }}
            - {name: {{ $port }}-certs, mountPath: /certs/{{ $port }}, readOnly: true}
            {{- if include "zk.passwordsSecret" (dict "context" $ "port" $port) }}
            - {name: {{ $port }}-passwords, mountPath: /certs/{{ $port }}-passwords, readOnly: true}
            {{- end }}
            {{- end }}
            {{- end }}
            {{- with $v.extraVolumeMounts }}
            {{- include "zk.tpl" (dict "value" . "context" $) | nindent 12 }}
            {{- end }}
        {{- with $v.sidecars }}
        {{- include "zk.tpl" (dict "value" . "context" $) | nindent 8 }}
        {{- end }}
      volumes:
        # zoo.cfg is made anew at every start, and the JAAS file has passwords.
        - name: conf
          emptyDir: {medium: Memory}
        - name: tmp
          emptyDir: {}
        - name: config
          configMap: {name: {{ include "zk.fullname" $ }}}
        {{- with $v.existingConfigmap }}
        - name: config-existing
          configMap: {name: {{ tpl . $ }}}
        {{- end }}
        # What a server needs to read the size of its StatefulSet, and nothing else.
        - name: api-access
          projected:
            sources:
              - serviceAccountToken: {path: token, expirationSeconds: 3607}
              - configMap:
                  name: kube-root-ca.crt
                  items: [{key: ca.crt, path: ca.crt}]
              - downwardAPI:
                  items: [{path: namespace, fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}]
        - name: super
          secret: {secretName: {{ include "zk.superSecret" $ }}}
        {{- if $v.auth.client.enabled }}
        - name: client-auth
          secret: {secretName: {{ include "zk.clientSecret" $ }}}
        {{- end }}
        {{- if $v.auth.quorum.enabled }}
        - name: quorum-auth
          secret: {secretName: {{ include "zk.quorumSecret" $ }}}
        {{- end }}
        {{- range $port := list "client" "quorum" }}
        {{- if (get $v.tls $port).enabled }}
        {{- $at := dict "context" $ "port" $port }}
        - name: {{ $port }}-certs
          secret: {secretName: {{ include "zk.tlsSecret" $at }}}
        {{- with include "zk.passwordsSecret" $at }}
        - name: {{ $port }}-passwords
          secret: {secretName: {{ . }}}
        {{- end }}
        {{- end }}
        {{- end }}
        {{- if not $v.persistence.enabled }}
        - name: data
          emptyDir: {}
        {{- else if $v.persistence.existingClaim }}
        - name: data
          persistentVolumeClaim: {claimName: {{ tpl $v.persistence.existingClaim $ }}}
        {{- end }}
        {{- if $v.dataLogDir }}
        {{- if not $v.persistence.enabled }}
        - name: data-log
          emptyDir: {}
        {{- else if $v.persistence.dataLogDir.existingClaim }}
        - name: data-log
          persistentVolumeClaim: {claimName: {{ tpl $v.persistence.dataLogDir.existingClaim $ }}}
        {{- end }}
        {{- end }}
        {{- with $v.extraVolumes }}
        {{- include "zk.tpl" (dict "value" . "context" $) | nindent 8 }}
        {{- end }}
  {{- if $v.persistence.enabled }}
  # A server that is scaled away keeps its data until you delete its claim.
  persistentVolumeClaimRetentionPolicy:
    whenDeleted: {{ $v.persistentVolumeClaimRetentionPolicy.whenDeleted }}
    whenScaled: {{ $v.persistentVolumeClaimRetentionPolicy.whenScaled }}
  {{- $claims := list }}
  {{- if not $v.persistence.existingClaim }}{{ $claims = append $claims (dict "name" "data" "size" $v.persistence.size "selector" $v.persistence.selector) }}{{ end }}
  {{- if and $v.dataLogDir (not $v.persistence.dataLogDir.existingClaim) }}{{ $claims = append $claims (dict "name" "data-log" "size" $v.persistence.dataLogDir.size "selector" $v.persistence.dataLogDir.selector) }}{{ end }}
  {{- with $claims }}
  volumeClaimTemplates:
    {{- range . }}
    - metadata:
        name: {{ .name }}
        {{- with $v.persistence.annotations }}
        annotations:
          {{- include "zk.tpl" (dict "value" . "context" $) | nindent 10 }}
        {{- end }}
        {{- with $v.persistence.labels }}
        labels:
          {{- include "zk.tpl" (dict "value" . "context" $) | nindent 10 }}
        {{- end }}
      spec:
        accessModes:
          {{- toYaml $v.persistence.accessModes | nindent 10 }}
        resources:
          requests:
            storage: {{ .size | quote }}
        {{- include "zk.storageClass" $ | nindent 8 }}
        {{- with .selector }}
        selector:
          {{- include "zk.tpl" (dict "value" . "context" $) | nindent 10 }}
        {{- end }}
    {{- end }}
  {{- end }}
  {{- end }}
{{- end -}}

{{/* Bitnami's affinity presets: a dict with the labels of the pods, and the values. */}}
{{- define "zk.affinity" -}}
{{- $term := printf "topologyKey: kubernetes.io/hostname\nlabelSelector:\n  matchLabels:\n%s" (.labels | indent 4) -}}
{{- range $kind, $preset := dict "podAffinity" .values.podAffinityPreset "podAntiAffinity" .values.podAntiAffinityPreset }}
{{- if eq $preset "hard" }}
{{ $kind }}:
  requiredDuringSchedulingIgnoredDuringExecution:
    - {{ $term | nindent 6 | trim }}
{{- else if eq $preset "soft" }}
{{ $kind }}:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 1
      podAffinityTerm:
        {{- $term | nindent 8 }}
{{- end }}
{{- end }}
{{- with .values.nodeAffinityPreset }}
{{- $expression := dict "key" .key "operator" "In" "values" .values }}
{{- if eq .type "hard" }}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          {{- list $expression | toYaml | nindent 10 }}
{{- else if eq .type "soft" }}
nodeAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 1
      preference:
        matchExpressions:
          {{- list $expression | toYaml | nindent 10 }}
{{- end }}
{{- end }}
{{- end -}}
