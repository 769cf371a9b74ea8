// SPDX-License-Identifier: Apache-2.0

package main

// processConfiguration has the defaults wherever a machine of its own would have
// them.
const processConfiguration = `apiVersion: dispatcher.dev/v1alpha1
kind: DispatcherConfiguration
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0", profiling: true}
tls: {certFile: serving.crt, keyFile: serving.key, clientCAFile: ca.crt}
sources: [{directory: registry}]
allowedNetworks: ["127.0.0.0/8"]
`

// clusterManifests are a cluster, and the configuration that is for it alone.
const clusterManifests = `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: %[1]q, labels: {case: %[1]q}}
spec:
  authentication: {certificate: {commonNames: [%[1]q]}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: %[1]q}
spec:
  webhooks: ["%[1]s/*"]
  clusterSelector: {matchLabels: {case: %[1]q}}
  onlySelectedClusters: true
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]q}
webhooks:
`

// webhookManifest is a webhook that is asked about what its rules name.
const webhookManifest = `- name: policy-%[1]d.example.com
  clientConfig: {url: "https://%[2]s/policy-%[1]d", caBundle: %[3]s}
  rules:
  - {operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], scope: Namespaced}
  - {operations: [CREATE, UPDATE], apiGroups: ["apps"], apiVersions: ["v1"], resources: ["deployments"], scope: Namespaced}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: ["v1"]
  timeoutSeconds: 10
`

// restrictions are everything else that can be said of when to call a webhook.
const restrictions = `  namespaceSelector:
    matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]
  objectSelector:
    matchExpressions: [{key: policy.example.com/exempt, operator: DoesNotExist}]
  matchConditions:
  - {name: not-nodes, expression: "!('system:nodes' in request.userInfo.groups)"}
`

// largeWebhook is one of many. Nothing is to be said against it: warnings about so many
// would be more lines than the log keeps beside what is awaited.
const largeWebhook = `- name: w%[1]d.example.com
  clientConfig: {url: "https://%[2]s/w%[1]d", caBundle: %[3]s}
  rules: [{operations: [CREATE], apiVersions: ["v1"], %[5]s}]
  namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}
  sideEffects: None
  admissionReviewVersions: ["v1"]
  matchConditions: [{name: c, expression: "request.name != 'x%[4]d'"}]
`

// largeCluster is one of many, with a binding of its own for a third of the
// webhooks.
const largeCluster = `---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: %[1]q, labels: {case: %[1]q}}
spec: {authentication: {certificate: {commonNames: [%[1]q]}}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: %[1]q}
spec:
  webhooks: ["policy/w%[3]d*", "policy/w?%[4]d*", "policy/w??5.*"]
  clusterSelector: {matchLabels: {case: %[1]q}}
  mode: %[5]s
  timeout: %[2]d00ms
`

// extraCluster is what changes.
const extraCluster = `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: extra, labels: {change: "%d"}}
spec: {authentication: {certificate: {commonNames: [extra]}}}
`
