// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// readerName is what the objects of RBAC are called; readerNamespace is where the
// ServiceAccount is.
const (
	readerNamespace = "admission-dispatcher"
	readerName      = "admission-dispatcher-namespaces"
)

// RBAC returns what a cluster applies so that the dispatcher may read its
// namespaces, its version and the objects of the resources, and ask its authorizer, and
// nothing else: the rights behind Cluster.spec.kubeconfigFile. They are given to the user
// of that name, a
// certificate's common name for instance; "" is a ServiceAccount, which is created.
// The same arguments give the same bytes.
func RBAC(user string, resources []schema.GroupVersionResource) []byte {
	var out bytes.Buffer
	what := "labels, and its version"
	if len(resources) > 0 {
		what += ", what its plugins and policies read"
	}
	comment(&out, `Lets the admission dispatcher read the namespaces of this cluster, with their
`+what+`, and ask who may do what, and nothing else. Made by:
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
%[3]s- nonResourceURLs: ["/version"]
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
%[2]s`, readerName, subject(user), readings(resources))
	return out.Bytes()
}

// readings are the rights to read the resources, those of an API group together. Versions
// do not matter to them.
func readings(resources []schema.GroupVersionResource) string {
	groups := map[string][]string{}
	for _, r := range resources {
		if r.GroupResource() != (schema.GroupResource{Resource: "namespaces"}) {
			groups[r.Group] = append(groups[r.Group], r.Resource)
		}
	}
	var out strings.Builder
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		list := groups[group]
		slices.Sort(list)
		names, _ := json.Marshal(slices.Compact(list)) // strings always have a form
		fmt.Fprintf(&out, "- apiGroups: [%q]\n  resources: %s\n  verbs: [\"get\", \"list\", \"watch\"]\n", group, strings.ReplaceAll(string(names), ",", ", "))
	}
	return out.String()
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
