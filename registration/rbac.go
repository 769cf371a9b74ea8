// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"fmt"
)

// readerName is what the objects of RBAC are called; readerNamespace is where the
// ServiceAccount is.
const (
	readerNamespace = "admission-dispatcher"
	readerName      = "admission-dispatcher-namespaces"
)

// RBAC returns what a cluster applies so that the dispatcher may read its
// namespaces and its version, and ask its authorizer, and nothing else: the rights behind
// Cluster.spec.kubeconfigFile. They are given to the user of that name, a
// certificate's common name for instance; "" is a ServiceAccount, which is created.
// The same name gives the same bytes.
func RBAC(user string) []byte {
	var out bytes.Buffer
	comment(&out, `Lets the admission dispatcher read the namespaces of this cluster, with their
labels, and its version, and ask who may do what, and nothing else. Made by:
dispatcher registration --rbac

`)
	if user == "" {
		out.WriteString(serviceAccount())
	}
	comment(&out, `get: a namespace that the watch has not brought yet; list, watch: all others. The
version says which requests this cluster never sends to webhooks. The last rule is for
expressions that use authorizer and for plugins that ask: it lets the account find out
what anybody may do, and do nothing of it. Without such an expression leave it out.`)
	fmt.Fprintf(&out, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: %[1]s
rules:
- apiGroups: [""]
  resources: ["namespaces"]
  verbs: ["get", "list", "watch"]
- nonResourceURLs: ["/version"]
  verbs: ["get"]
- apiGroups: ["authorization.k8s.io"]
  resources: ["subjectaccessreviews"]
  verbs: ["create"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: %[1]s
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: %[1]s
subjects:
%[2]s`, readerName, subject(user))
	return out.Bytes()
}

func serviceAccount() string {
	var out bytes.Buffer
	comment(&out, fmt.Sprintf(`Who the dispatcher is here: put a token of this ServiceAccount into the kubeconfig.
  kubectl --namespace %s create token %s --duration 8760h
No pod needs the token, so none gets it.`, readerNamespace, readerName))
	fmt.Fprintf(&out, `apiVersion: v1
kind: Namespace
metadata:
  name: %s
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: %s
  namespace: %[1]s
automountServiceAccountToken: false
---
`, readerNamespace, readerName)
	return out.String()
}

func subject(user string) string {
	if user != "" {
		return fmt.Sprintf("- kind: User\n  apiGroup: rbac.authorization.k8s.io\n  name: %q\n", user)
	}
	return fmt.Sprintf("- kind: ServiceAccount\n  name: %s\n  namespace: %s\n", readerName, readerNamespace)
}
