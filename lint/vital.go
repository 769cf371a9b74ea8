// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

// request is a request that a cluster makes of itself.
type request struct {
	group, resource, sub, kind string
	namespace, name            string
	operation                  codec.Operation
	user                       string
	groups                     []string
	stops                      string // what its absence stops
	ours                       bool   // the dispatcher leaves it to its webhooks on purpose
}

// Who asks.
var (
	apiserver  = asking{"system:apiserver", []string{"system:masters"}}
	kubelet    = asking{"system:node:worker", []string{"system:nodes", "system:authenticated"}}
	bootstrap  = asking{"system:bootstrap:abcdef", []string{"system:bootstrappers", "system:authenticated"}}
	controller = asking{"system:kube-controller-manager", []string{"system:authenticated"}}
)

type asking struct {
	user   string
	groups []string
}

// Words for what stops. Several requests share one.
const (
	stopsLeases     = "leases"
	stopsHeartbeats = "node heartbeats"
	stopsSystem     = "writes in kube-system"
	stopsJoining    = "nodes that join"
	stopsStart      = "the start of the API server"
	stopsReviews    = "reviews of authentication and authorization"
)

// vitalRequests are the requests without which a cluster cannot heal, each by the one
// who makes it. A webhook that fails closed and wants one of them can keep the cluster
// from starting, from making nodes ready, or from starting the webhook's own pods.
func vitalRequests() []request {
	var all []request
	add := func(who asking, operation codec.Operation, namespace, stops string, resources ...[3]string) {
		for _, r := range resources {
			q := request{group: r[0], resource: r[1], kind: r[2], namespace: namespace, name: "x", operation: operation, user: who.user, groups: who.groups, stops: stops}
			q.resource, q.sub = split(q.resource)
			q.ours = stops == stopsReviews
			if q.resource == "namespaces" {
				q.name, q.namespace = metav1.NamespaceSystem, metav1.NamespaceSystem
			}
			all = append(all, q)
		}
	}
	add(kubelet, codec.Update, "kube-node-lease", stopsLeases, [3]string{"coordination.k8s.io", "leases", "Lease"})
	add(controller, codec.Update, metav1.NamespaceSystem, stopsLeases, [3]string{"coordination.k8s.io", "leases", "Lease"})
	add(kubelet, codec.Update, "", stopsHeartbeats, [3]string{"", "nodes/status", "Node"})
	add(kubelet, codec.Create, "", stopsJoining, [3]string{"", "nodes", "Node"})
	add(bootstrap, codec.Create, "", stopsJoining, [3]string{"certificates.k8s.io", "certificatesigningrequests", "CertificateSigningRequest"})
	add(controller, codec.Update, "", stopsJoining,
		[3]string{"certificates.k8s.io", "certificatesigningrequests/approval", "CertificateSigningRequest"},
		[3]string{"certificates.k8s.io", "certificatesigningrequests/status", "CertificateSigningRequest"})
	for _, operation := range []codec.Operation{codec.Create, codec.Update} {
		add(controller, operation, metav1.NamespaceSystem, stopsSystem,
			[3]string{"", "pods", "Pod"}, [3]string{"", "configmaps", "ConfigMap"}, [3]string{"", "endpoints", "Endpoints"},
			[3]string{"", "secrets", "Secret"}, [3]string{"", "serviceaccounts", "ServiceAccount"}, [3]string{"", "services", "Service"},
			[3]string{"apps", "controllerrevisions", "ControllerRevision"}, [3]string{"apps", "daemonsets", "DaemonSet"},
			[3]string{"apps", "deployments", "Deployment"}, [3]string{"apps", "replicasets", "ReplicaSet"},
			[3]string{"discovery.k8s.io", "endpointslices", "EndpointSlice"}, [3]string{"networking.k8s.io", "networkpolicies", "NetworkPolicy"})
		add(apiserver, operation, metav1.NamespaceDefault, stopsStart,
			[3]string{"", "services", "Service"}, [3]string{"", "endpoints", "Endpoints"}, [3]string{"discovery.k8s.io", "endpointslices", "EndpointSlice"})
		add(apiserver, operation, metav1.NamespaceSystem, stopsStart,
			[3]string{"rbac.authorization.k8s.io", "roles", "Role"}, [3]string{"rbac.authorization.k8s.io", "rolebindings", "RoleBinding"})
		add(apiserver, operation, "", stopsStart,
			[3]string{"rbac.authorization.k8s.io", "clusterroles", "ClusterRole"}, [3]string{"rbac.authorization.k8s.io", "clusterrolebindings", "ClusterRoleBinding"},
			[3]string{"apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition"}, [3]string{"apiregistration.k8s.io", "apiservices", "APIService"},
			[3]string{"scheduling.k8s.io", "priorityclasses", "PriorityClass"}, [3]string{"", "namespaces", "Namespace"})
	}
	add(controller, codec.Update, metav1.NamespaceSystem, stopsSystem,
		[3]string{"", "pods/status", "Pod"}, [3]string{"", "services/status", "Service"}, [3]string{"apps", "daemonsets/status", "DaemonSet"},
		[3]string{"apps", "deployments/scale", "Scale"}, [3]string{"apps", "replicasets/status", "ReplicaSet"}, [3]string{"apps", "replicasets/scale", "Scale"})
	add(apiserver, codec.Update, metav1.NamespaceDefault, stopsStart, [3]string{"", "services/status", "Service"})
	add(apiserver, codec.Update, "", stopsStart,
		[3]string{"", "namespaces/status", "Namespace"}, [3]string{"apiextensions.k8s.io", "customresourcedefinitions/status", "CustomResourceDefinition"},
		[3]string{"apiregistration.k8s.io", "apiservices/status", "APIService"})
	add(kubelet, codec.Create, "", stopsReviews,
		[3]string{"authentication.k8s.io", "tokenreviews", "TokenReview"}, [3]string{"authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"})
	return all
}

// id names the request in Finding.Stops.
func (q *request) id() string {
	id := q.resource
	if q.sub != "" {
		id += "/" + q.sub
	}
	if q.group != "" {
		id += "." + q.group
	}
	if q.namespace != "" && q.resource != "namespaces" {
		id = q.namespace + "/" + id
	}
	return id
}

// witness is a request as a webhook would be matched against it.
type witness struct {
	request
	subject *match.Subject
}

func (l *linter) witness(q request, version string, labels map[string]string) *witness {
	object := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: metav1.GroupVersion{Group: q.group, Version: version}.String(), Kind: q.kind},
		ObjectMeta: metav1.ObjectMeta{Name: q.name, Labels: labels}}
	if q.resource != "namespaces" {
		object.Namespace = q.namespace
	} else if object.Labels == nil {
		object.Labels = l.labels(q.name)
	}
	r := &codec.Review{
		UID: []byte("lint"), Operation: q.operation,
		Kind:     codec.GroupVersionKind{Group: []byte(q.group), Version: []byte(version), Kind: []byte(q.kind)},
		Resource: codec.GroupVersionResource{Group: []byte(q.group), Version: []byte(version), Resource: []byte(q.resource)}, SubResource: []byte(q.sub),
		Name: []byte(q.name), Namespace: []byte(q.namespace), User: codec.UserInfo{Username: []byte(q.user)},
	}
	r.RequestKind, r.RequestResource, r.RequestSubResource = r.Kind, r.Resource, r.SubResource
	for _, group := range q.groups {
		r.User.Groups = append(r.User.Groups, []byte(group))
	}
	encoded := encode(&object)
	err := codec.ScanObject(&r.Object, encoded)
	if err == nil && q.operation == codec.Update {
		err = codec.ScanObject(&r.OldObject, encoded)
	}
	if err != nil {
		panic(fmt.Sprintf("the witness %s is no object: %v", q.id(), err))
	}
	return &witness{q, &match.Subject{View: hook.NewView(hook.Source{Review: r}), Namespaces: known{l}}}
}

// vitals returns the witnesses of vitalRequests in a version, made once.
func (l *linter) vitals(version string) []*witness {
	if made, ok := l.witnesses[version]; ok {
		return made
	}
	var list []*witness
	for _, q := range vitalRequests() {
		list = append(list, l.witness(q, version, nil))
	}
	l.witnesses[version] = list
	return list
}

// known is what is known of namespaces.
type known struct{ *linter }

// NamespaceLabels implements match.Namespaces.
func (k known) NamespaceLabels(name string) (map[string]string, error) { return k.labels(name), nil }

func (l *linter) labels(name string) map[string]string {
	all := map[string]string{"kubernetes.io/metadata.name": name}
	for key, value := range l.Namespaces[name] {
		all[key] = value
	}
	return all
}
