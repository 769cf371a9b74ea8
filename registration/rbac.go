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

	"github.com/admission-dispatcher/dispatcher/chain"
)

// readerName is what the objects of RBAC are called; readerNamespace is where the
// ServiceAccount is.
const (
	readerNamespace = "admission-dispatcher"
	readerName      = "admission-dispatcher-namespaces"
)

// RBAC returns what a cluster applies so that the dispatcher may do what it asks the
// cluster's API for, and nothing else: the rights behind Cluster.spec.kubeconfigFile. These
// are to read its namespaces and its version, and what the Hooks of the cluster need: the
// objects of resources, the types of kinds, answers of its authorizer. Of a cluster that is
// nil no Hooks are known: it may ask the authorizer, and reads nothing else. The rights are
// given to the user of that name, a certificate's common name for instance; "" is a
// ServiceAccount, which is created. The same arguments give the same bytes.
func RBAC(user string, cluster *chain.Cluster) []byte {
	var out bytes.Buffer
	r := rightsOf(cluster)
	comment(&out, `Lets the admission dispatcher read the namespaces of this cluster, with their
labels, and its version`+r.what+`, and nothing else. Made by:
dispatcher registration --rbac

`)
	if user == "" {
		out.WriteString(serviceAccount())
	}
	comment(&out, `get: a namespace that the watch has not brought yet; list, watch: all others. The
version says which requests this cluster never sends to webhooks.`+r.why)
	fmt.Fprintf(&out, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: %[1]s
rules:
- apiGroups: [""]
  resources: ["namespaces"]
  verbs: ["get", "list", "watch"]
%[3]s- nonResourceURLs: [%[4]s]
  verbs: ["get"]
%[5]s%[6]s---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: %[1]s
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: %[1]s
subjects:
%[2]s`, readerName, subject(user), r.objects, r.urls, r.access, r.registration)
	return out.Bytes()
}

// rights are the rules beside those that every cluster has, and the words about them.
type rights struct {
	objects, access string // rules
	registration    string // a rule
	urls            string // of a rule
	what, why       string // of comments
}

func rightsOf(cluster *chain.Cluster) rights {
	r, asks := rights{urls: `"/version"`}, cluster == nil
	r.lookAfter(cluster)
	if cluster != nil {
		resources := cluster.NeededObjects()
		if r.objects = readings(resources); len(resources) > 0 {
			r.what += ", what its plugins and policies read"
		}
		if _, types := cluster.NeededTypes(); types {
			r.urls += `, "/openapi/v3", "/openapi/v3/*"`
			r.what += ",\nthe types of its kinds"
			r.why += `
The documents below /openapi/v3 have the types of kinds into which policies merge.`
		}
		asks = cluster.Authorizes()
	}
	if asks {
		r.access = `- apiGroups: ["authorization.k8s.io"]
  resources: ["subjectaccessreviews"]
  verbs: ["create"]
`
		r.what += ", and ask who may do what"
		r.why += ` The last rule is for
expressions that use authorizer and for plugins that ask: it lets the account find out
what anybody may do, and do nothing of it.`
	}
	if cluster == nil {
		r.why += " Without such an expression leave it out."
	}
	return r
}

// lookAfter adds the rights by which the controller sees what the cluster has registered,
// and changes it where the Cluster says Apply.
func (r *rights) lookAfter(cluster *chain.Cluster) {
	verbs := `["get"]`
	switch {
	case cluster != nil && cluster.Registration == registrationOff:
		return
	case cluster != nil && cluster.Registration == registrationApply:
		verbs = `["get", "create", "patch"]`
		r.what += ", and change its own registration"
		r.why += `
The rule with resourceNames lets the controller compare the registration with what would
be printed now, and apply that: registration.policy of the Cluster is Apply.`
	default:
		r.what += ", read its own registration"
		r.why += `
The rule with resourceNames lets the controller compare the registration with what would
be printed now.`
	}
	r.registration = fmt.Sprintf(`- apiGroups: ["admissionregistration.k8s.io"]
  resources: ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
  resourceNames: [%q]
  verbs: %s
`, configurationName, verbs)
}

// The policies of Cluster.spec.registration that are not Report.
const (
	registrationOff   = "Off"
	registrationApply = "Apply"
)

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
	comment(&out, fmt.Sprintf(`Who the dispatcher is here: put a token of this ServiceAccount into the kubeconfig, that
of a Secret of type kubernetes.io/service-account-token (docs/registration.md), or:
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
