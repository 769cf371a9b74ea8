// SPDX-License-Identifier: Apache-2.0

package inventory

import "fmt"

// RBAC returns the rights that Read needs in a cluster, for a user of that name, as
// manifests. All of them are to read.
func RBAC(user string) string {
	return fmt.Sprintf(`# What "dispatcher-kube lint" and "dispatcher-kube adopt" read, and nothing else. adopt needs the first
# rule alone, and so does spec.mirror of a Cluster.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: admission-dispatcher-inventory
rules:
- apiGroups: ["admissionregistration.k8s.io"]
  resources: ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"]
  verbs: ["list"]
- apiGroups: [""]
  resources: ["namespaces"]
  verbs: ["list"]
- apiGroups: ["apiregistration.k8s.io"]
  resources: ["apiservices"]
  verbs: ["list"]
- apiGroups: [""]
  resources: ["services"]
  verbs: ["get"]
- apiGroups: ["discovery.k8s.io"]
  resources: ["endpointslices"]
  verbs: ["list"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: admission-dispatcher-inventory
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: admission-dispatcher-inventory
subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: %q
`, user)
}
