{{- define "zk.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The rule of Bitnami's chart: a release whose name has the chart's name isn't doubled. */}}
{{- define "zk.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "zk.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "zk.headless" -}}
{{- printf "%s-%s" (include "zk.fullname" .) (default "headless" .Values.service.headless.servicenameOverride) | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "zk.observer" -}}
{{- printf "%s-observer" (include "zk.fullname" .) -}}
{{- end -}}

{{- define "zk.domain" -}}
{{- printf "%s.%s.svc.%s" (include "zk.headless" .) (include "zk.namespace" .) .Values.clusterDomain -}}
{{- end -}}

{{- define "zk.tpl" -}}
{{- if kindIs "string" .value -}}{{- tpl .value .context -}}{{- else -}}{{- tpl (toYaml .value) .context -}}{{- end -}}
{{- end -}}

{{- define "zk.matchLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/name: {{ include "zk.name" . }}
{{- end -}}

{{- define "zk.labels" -}}
{{ include "zk.matchLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* metadata of an object: a dict with the context, the name, and optionally more labels and annotations */}}
{{- define "zk.metadata" -}}
name: {{ .name }}
namespace: {{ default (include "zk.namespace" .context) .namespace }}
labels:
  {{- include "zk.labels" .context | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $annotations := merge (dict) (default (dict) .annotations) (default (dict) .context.Values.commonAnnotations) }}
{{- with $annotations }}
annotations:
  {{- include "zk.tpl" (dict "value" . "context" $.context) | nindent 2 }}
{{- end }}
{{- end -}}

{{/* An image of ZooKeeper, which the values of a chart with ZooKeeper name, stands for ours. */}}
{{- define "zk.image" -}}
{{- $i := .Values.image -}}
{{- if regexMatch "^(library/)?zookeeper$|^(bitnami|bitnamilegacy|bitnamisecure|signoz)/zookeeper$" (toString $i.repository) -}}
{{- $i = dict "registry" "ghcr.io" "repository" "zkgo/zkgo" -}}
{{- end -}}
{{- $registry := default $i.registry (dig "imageRegistry" "" (default (dict) .Values.global)) -}}
{{- if $registry -}}{{ $registry }}/{{- end -}}{{ $i.repository }}
{{- if $i.digest -}}@{{ $i.digest }}{{- else -}}:{{ default .Chart.AppVersion (toString (default "" $i.tag)) }}{{- end -}}
{{- end -}}

{{/* The image of rclone. A global registry replaces its own. */}}
{{- define "zk.rcloneImage" -}}
{{- $image := .Values.backup.s3.image -}}
{{- $registry := dig "imageRegistry" "" (default (dict) .Values.global) -}}
{{- if $registry }}{{ $registry }}/{{ regexReplaceAll "^[^/]*[.:][^/]*/" $image "" }}{{ else }}{{ $image }}{{ end -}}
{{- end -}}

{{- define "zk.pullSecrets" -}}
{{- $names := list -}}
{{- range concat (default (list) (dig "imagePullSecrets" (list) (default (dict) .Values.global))) (default (list) .Values.image.pullSecrets) -}}
{{- $names = append $names (kindIs "map" . | ternary (get (kindIs "map" . | ternary . (dict)) "name") .) -}}
{{- end -}}
{{- with $names | uniq }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "zk.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "zk.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "zk.superSecret" -}}
{{- default (printf "%s-super" (include "zk.fullname" .)) (tpl .Values.auth.super.existingSecret .) -}}
{{- end -}}

{{- define "zk.clientSecret" -}}
{{- default (printf "%s-client-auth" (include "zk.fullname" .)) (tpl .Values.auth.client.existingSecret .) -}}
{{- end -}}

{{- define "zk.quorumSecret" -}}
{{- default (printf "%s-quorum-auth" (include "zk.fullname" .)) (tpl .Values.auth.quorum.existingSecret .) -}}
{{- end -}}

{{/* The Secret with the certificates of a port: a dict with the context and "client" or "quorum". */}}
{{- define "zk.tlsSecret" -}}
{{- $t := get .context.Values.tls .port -}}
{{- default (printf "%s-%s-crt" (include "zk.fullname" .context) .port) (tpl $t.existingSecret .context) -}}
{{- end -}}

{{- define "zk.keystoreKey" -}}
{{- $t := get .context.Values.tls .port -}}
{{- if $t.existingSecretKeystoreKey -}}{{ $t.existingSecretKeystoreKey }}{{- else if $t.certManager.enabled -}}tls-combined.pem{{- else if $t.existingSecret -}}zookeeper.keystore.jks{{- else -}}keystore.pem{{- end -}}
{{- end -}}

{{- define "zk.truststoreKey" -}}
{{- $t := get .context.Values.tls .port -}}
{{- if $t.existingSecretTruststoreKey -}}{{ $t.existingSecretTruststoreKey }}{{- else if $t.certManager.enabled -}}ca.crt{{- else if $t.existingSecret -}}zookeeper.truststore.jks{{- else -}}ca.crt{{- end -}}
{{- end -}}

{{/* The type of a store by the name of its key. */}}
{{- define "zk.storeType" -}}
{{- if hasSuffix ".jks" . -}}JKS{{- else if or (hasSuffix ".p12" .) (hasSuffix ".pfx" .) -}}PKCS12{{- else -}}PEM{{- end -}}
{{- end -}}

{{- define "zk.passwordsSecret" -}}
{{- $t := get .context.Values.tls .port -}}
{{- if $t.passwordsSecretName -}}{{ tpl $t.passwordsSecretName .context }}
{{- else if or $t.keystorePassword $t.truststorePassword -}}{{ printf "%s-%s-tls-passwords" (include "zk.fullname" .context) .port }}
{{- end -}}
{{- end -}}

{{/* Lines of zoo.cfg for the stores of a port: a dict with the context, the port, and the prefix of the keys. */}}
{{- define "zk.stores" -}}
{{- $t := get .context.Values.tls .port -}}
{{ .prefix }}.keyStore.location=/certs/{{ .port }}/{{ include "zk.keystoreKey" . }}
{{ .prefix }}.keyStore.type={{ include "zk.storeType" (include "zk.keystoreKey" .) }}
{{ .prefix }}.trustStore.location=/certs/{{ .port }}/{{ include "zk.truststoreKey" . }}
{{ .prefix }}.trustStore.type={{ include "zk.storeType" (include "zk.truststoreKey" .) }}
{{- if include "zk.passwordsSecret" . }}
{{ .prefix }}.keyStore.passwordPath=/certs/{{ .port }}-passwords/{{ default "keystore-password" $t.passwordsSecretKeystoreKey }}
{{ .prefix }}.trustStore.passwordPath=/certs/{{ .port }}-passwords/{{ default "truststore-password" $t.passwordsSecretTruststoreKey }}
{{- end }}
{{- end -}}

{{/* The port whose certificate the AdminServer has: that between servers, else that for clients. Empty without TLS. */}}
{{- define "zk.adminTLS" -}}
{{- if .Values.tls.quorum.enabled -}}quorum{{- else if .Values.tls.client.enabled -}}client{{- end -}}
{{- end -}}

{{/* The names that certificates need. */}}
{{- define "zk.dnsNames" -}}
{{- $service := printf "%s.%s.svc" (include "zk.fullname" .) (include "zk.namespace" .) -}}
{{- toYaml (list (printf "*.%s" (include "zk.domain" .)) (include "zk.fullname" .) $service (printf "%s.%s" $service .Values.clusterDomain) "localhost") -}}
{{- end -}}

{{- define "zk.storageClass" -}}
{{- $class := default .Values.persistence.storageClass (default (dig "storageClass" "" (default (dict) .Values.global)) (dig "defaultStorageClass" "" (default (dict) .Values.global))) -}}
{{- with .Values.persistence.storageClass -}}{{- $class = . -}}{{- end -}}
{{- if eq $class "-" }}storageClassName: ""{{- else if $class }}storageClassName: {{ $class }}{{- end -}}
{{- end -}}

{{/* A security context without Bitnami's "enabled": a dict with the context and the values. OpenShift assigns users and groups, unless global.compatibility.openshift.adaptSecurityContext is disabled. */}}
{{- define "zk.security" -}}
{{- $adapt := dig "compatibility" "openshift" "adaptSecurityContext" "auto" (default (dict) .context.Values.global) -}}
{{- $values := omit .values "enabled" -}}
{{- if or (eq $adapt "force") (and (eq $adapt "auto") (.context.Capabilities.APIVersions.Has "security.openshift.io/v1")) -}}
{{- $values = omit $values "fsGroup" "runAsUser" "runAsGroup" -}}
{{- end -}}
{{- toYaml $values -}}
{{- end -}}

{{- define "zk.resources" -}}
{{- $presets := dict
  "nano"    (dict "requests" (dict "cpu" "100m" "memory" "128Mi") "limits" (dict "memory" "192Mi"))
  "micro"   (dict "requests" (dict "cpu" "250m" "memory" "256Mi") "limits" (dict "memory" "384Mi"))
  "small"   (dict "requests" (dict "cpu" "500m" "memory" "512Mi") "limits" (dict "memory" "768Mi"))
  "medium"  (dict "requests" (dict "cpu" "500m" "memory" "1024Mi") "limits" (dict "memory" "1536Mi"))
  "large"   (dict "requests" (dict "cpu" "1" "memory" "2048Mi") "limits" (dict "memory" "3072Mi"))
  "xlarge"  (dict "requests" (dict "cpu" "1" "memory" "3072Mi") "limits" (dict "memory" "6144Mi"))
  "2xlarge" (dict "requests" (dict "cpu" "1" "memory" "3072Mi") "limits" (dict "memory" "12288Mi")) -}}
{{- if .resources -}}{{- toYaml .resources -}}
{{- else if and .resourcesPreset (ne .resourcesPreset "none") -}}{{- toYaml (get $presets .resourcesPreset) -}}
{{- else -}}{}{{- end -}}
{{- end -}}

{{/* A probe of the AdminServer: a dict with the context, the probe's values and the path. The kubelet checks no certificate, and sends no password. */}}
{{- define "zk.probe" -}}
{{- omit .probe "enabled" "probeCommandTimeout" | toYaml }}
httpGet:
  path: {{ .path }}
  port: http-admin
  {{- if include "zk.adminTLS" .context }}
  scheme: HTTPS
  {{- end }}
{{- end -}}

{{/* Whether a custom probe runs a shell, as SigNoz's does: the image has none. */}}
{{- define "zk.shell" -}}
{{- if kindIs "map" . -}}
{{- $command := dig "exec" "command" (list "") . -}}
{{- if has (base (first $command | toString)) (list "sh" "bash") -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* The values at the top that are neither the chart's nor those of Bitnami's chart. Charts that embed this one have such values, so they are no errors. */}}
{{- define "zk.unknown" -}}
{{- $known := list
  "global" "nameOverride" "fullnameOverride" "namespaceOverride" "clusterDomain" "commonLabels"
  "commonAnnotations" "extraDeploy" "image" "replicaCount" "minServerId" "observers" "auth" "tls"
  "tickTime" "initLimit" "syncLimit" "preAllocSize" "snapCount" "maxClientCnxns"
  "maxSessionTimeout" "fourlwCommandsWhitelist" "autopurge" "logLevel" "jvmFlags" "configuration"
  "existingConfigmap" "extraEnvVars" "extraEnvVarsCM" "extraEnvVarsSecret" "command" "args"
  "lifecycleHooks" "containerPorts" "startupProbe" "livenessProbe" "readinessProbe"
  "customStartupProbe" "customLivenessProbe" "customReadinessProbe" "resourcesPreset" "resources"
  "podSecurityContext" "containerSecurityContext" "podLabels" "podAnnotations"
  "podAffinityPreset" "podAntiAffinityPreset" "nodeAffinityPreset" "affinity" "nodeSelector"
  "tolerations" "topologySpreadConstraints" "priorityClassName" "schedulerName" "hostAliases"
  "dnsPolicy" "dnsConfig" "enableServiceLinks" "podManagementPolicy" "updateStrategy"
  "minReadySeconds" "revisionHistoryLimit" "terminationGracePeriodSeconds" "initContainers"
  "sidecars" "extraVolumes" "extraVolumeMounts" "pdb" "service" "externalAccess" "networkPolicy"
  "serviceAccount" "rbac" "persistence" "dataLogDir" "persistentVolumeClaimRetentionPolicy"
  "metrics" "backup" "enabled" "kubeVersion" "usePasswordFiles" "diagnosticMode" "heapSize"
  "listenOnAllIPs" "zooServers" "volumePermissions" "automountServiceAccountToken" -}}
{{- $unknown := list -}}
{{- range keys .Values | sortAlpha -}}
{{- if not (has . $known) -}}{{- $unknown = append $unknown . -}}{{- end -}}
{{- end -}}
{{- join ", " $unknown -}}
{{- end -}}

{{/* Checks that the schema can't express. */}}
{{- define "zk.validate" -}}
{{- if ne .Values.podManagementPolicy "Parallel" -}}
{{- fail "podManagementPolicy must be Parallel: an ensemble forms only of all its servers, and the first one alone is never ready" -}}
{{- end -}}
{{/* A pod's label has the name of its StatefulSet and a hash of up to ten characters, and at most 63. */}}
{{- $longest := .Values.observers.enabled | ternary (include "zk.observer" .) (include "zk.fullname" .) -}}
{{- if gt (len $longest) 52 -}}
{{- fail (printf "the StatefulSet %s has a name of %d characters, and with more than 52 Kubernetes may make no pods: set fullnameOverride, or take a shorter name of the release" $longest (len $longest)) -}}
{{- end -}}
{{- if and .Values.persistence.existingClaim (gt (int .Values.replicaCount) 1) -}}
{{- fail "persistence.existingClaim is for one replica: several servers cannot share a volume" -}}
{{- end -}}
{{- if gt (add (int .Values.minServerId) (int .Values.replicaCount)) (int .Values.observers.minServerId) -}}
{{- fail "observers.minServerId must be above the ids of all voters (minServerId + replicaCount)" -}}
{{- end -}}
{{- range $port := list "client" "quorum" -}}
{{- $t := get $.Values.tls $port -}}
{{- if and $t.enabled (not (or $t.existingSecret $t.certManager.enabled $t.autoGenerated)) -}}
{{- fail (printf "tls.%s.enabled needs tls.%s.existingSecret, tls.%s.certManager.enabled or tls.%s.autoGenerated" $port $port $port $port) -}}
{{- end -}}
{{- if and $t.certManager.enabled (not $t.certManager.issuerRef.name) -}}
{{- fail (printf "tls.%s.certManager.enabled needs tls.%s.certManager.issuerRef.name" $port $port) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.auth.client.enabled (not .Values.auth.client.serverUsers) -}}
{{- fail "auth.client.enabled needs auth.client.serverUsers" -}}
{{- end -}}
{{- if and .Values.auth.quorum.enabled (not (and .Values.auth.quorum.serverUsers .Values.auth.quorum.learnerUser)) -}}
{{- fail "auth.quorum.enabled needs auth.quorum.serverUsers and auth.quorum.learnerUser" -}}
{{- end -}}
{{- if and .Values.backup.enabled .Values.backup.s3.enabled (not .Values.backup.s3.existingSecret) -}}
{{- fail "backup.s3.enabled needs backup.s3.existingSecret, a Secret with the variables of rclone (e.g. AWS_ACCESS_KEY_ID)" -}}
{{- end -}}
{{- if and .Values.pdb.minAvailable .Values.pdb.maxUnavailable -}}
{{- fail "pdb.minAvailable and pdb.maxUnavailable exclude each other" -}}
{{- end -}}
{{- end -}}
