// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// gatekeeperNamespaces are there before Gatekeeper is, with labels that policies
// and Gatekeeper's configurations select by.
var gatekeeperNamespaces = map[string]map[string]string{
	"gk-plain":     nil,
	"gk-tell":      {"tell": "everything"},                                 // what Gatekeeper is sent becomes a warning
	"gk-blue":      {"team": "blue"},                                       // policies of a team
	"gk-ignored":   {"admission.gatekeeper.sh/ignore": "no-self-managing"}, // by Gatekeeper's configurations
	"gk-excluded":  nil,                                                    // by constraints
	"gk-unwatched": nil,                                                    // by Gatekeeper's Config
}

// The objects that requests are about. Those of a name with "bad" break a policy.
const (
	limits = `resources: {limits: {cpu: 1, memory: 1Gi}}`

	goodPod    = `{apiVersion: v1, kind: Pod, spec: {containers: [{name: main, image: "registry.example.com/web:v1", ` + limits + `}]}}`
	pulledPod  = `{apiVersion: v1, kind: Pod, spec: {containers: [{name: main, image: "web:v1", imagePullPolicy: Always, ` + limits + `}]}}`
	badPod     = `{apiVersion: v1, kind: Pod, spec: {containers: [{name: main, image: "registry.example.com/web:latest", ` + limits + `}]}}`
	worsePod   = `{apiVersion: v1, kind: Pod, spec: {hostPID: true, hostNetwork: true, containers: [{name: main, image: web}, {name: side, image: "side:latest"}], initContainers: [{name: init, image: "init:testing"}]}}`
	trustedPod = `{apiVersion: v1, kind: Pod, metadata: {labels: {trusted: "yes"}}, spec: {hostPID: true, containers: [{name: main, image: "web:v1", ` + limits + `}]}}`
	slackPod   = `{apiVersion: v1, kind: Pod, spec: {containers: [{name: main, image: "web:v1"}, {name: side, image: "side:v1", resources: {limits: {cpu: 1}}}]}}`

	goodMap = `{apiVersion: v1, kind: ConfigMap, metadata: {labels: {owner: e2e, tier: web}}, data: {a: "<b> & c"}}`
	badMap  = `{apiVersion: v1, kind: ConfigMap, data: {a: b}}`
	halfMap = `{apiVersion: v1, kind: ConfigMap, metadata: {labels: {owner: E2E, tier: cache}}}`

	goodSecret = `{apiVersion: v1, kind: Secret, metadata: {labels: {owner: e2e, tier: db}}, stringData: {a: b}}`
	badSecret  = `{apiVersion: v1, kind: Secret, metadata: {labels: {owner: e2e}}}`

	podTemplate    = `template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "web:v1", args: [--debug, --verbose]}]}}`
	badTemplate    = `template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "web:latest"}, {name: side, image: side}]}}`
	goodDeployment = `{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {app: web}}, ` + podTemplate + `}}`
	badDeployment  = `{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {app: web}}, ` + badTemplate + `}}`
	statefulSet    = `{apiVersion: apps/v1, kind: StatefulSet, spec: {serviceName: web, selector: {matchLabels: {app: web}}, ` + podTemplate + `}}`
	daemonSet      = `{apiVersion: apps/v1, kind: DaemonSet, spec: {selector: {matchLabels: {app: web}}, ` + badTemplate + `}}`
	job            = `{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "web:v1"}]}}}}`
	badJob         = `{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "web:testing"}]}}}}`
	cronJob        = `{apiVersion: batch/v1, kind: CronJob, spec: {schedule: "0 0 * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "web:v1"}]}}}}}}`
	badCronJob     = `{apiVersion: batch/v1, kind: CronJob, spec: {schedule: "0 0 * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: web}]}}}}}}`

	service       = `{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}`
	blueService   = `{apiVersion: v1, kind: Service, metadata: {labels: {team: blue}}, spec: {ports: [{port: 80}]}}`
	ingress       = `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {labels: {team: red}}, spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}}`
	networkPolicy = `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {podSelector: {}}}`
	account       = `{apiVersion: v1, kind: ServiceAccount}`
	role          = `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`
	claim         = `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`
	budget        = `{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}}`
	leaseObject   = `{apiVersion: coordination.k8s.io/v1, kind: Lease, spec: {holderIdentity: e2e}}`
	slice         = `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, endpoints: [{addresses: [10.1.2.3]}]}`

	target        = `scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 3`
	autoscaler1   = `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, spec: {` + target + `, targetCPUUtilizationPercentage: 50}}`
	autoscaler2   = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {` + target + `, metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 70}}}]}}`
	coreEvent     = `{apiVersion: v1, kind: Event, involvedObject: {kind: Pod, namespace: $NAMESPACE, name: web}, reason: Tested, message: "<a> & b", type: Normal, source: {component: e2e}}`
	eventsEvent   = `{apiVersion: events.k8s.io/v1, kind: Event, eventTime: "2026-01-01T00:00:00.000001Z", regarding: {kind: Pod, namespace: $NAMESPACE, name: web}, reason: Tested, action: Test, type: Normal, reportingController: e2e.example.com/test, reportingInstance: e2e, note: "<a> & b"}`
	clusterRole   = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {labels: {tell: everything}}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`
	priorityClass = `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {labels: {tell: everything}}, value: 7}`
	node          = `{apiVersion: v1, kind: Node}`

	goodNamespace    = `{apiVersion: v1, kind: Namespace, metadata: {labels: {team: red}}}`
	badNamespace     = `{apiVersion: v1, kind: Namespace}`
	ignoredNamespace = `{apiVersion: v1, kind: Namespace, metadata: {labels: {team: red, admission.gatekeeper.sh/ignore: please}}}`
	worseNamespace   = `{apiVersion: v1, kind: Namespace, metadata: {labels: {team: Red, admission.gatekeeper.sh/ignore: please}}}`

	gadget     = `{apiVersion: e2e.example.com/v1, kind: Gadget, spec: {a: 1}}`
	dualGadget = `{apiVersion: e2e.example.com/v1, kind: Gadget, Metadata: {labels: {owner: nobody}}}`
)

// plural is the resource of a kind where it is not the kind's name with an "s".
var plural = map[string]string{"Ingress": "ingresses", "NetworkPolicy": "networkpolicies", "PriorityClass": "priorityclasses"}

var clusterScoped = map[string]bool{
	"Namespace": true, "ClusterRole": true, "PriorityClass": true, "Node": true, "CustomResourceDefinition": true,
	"ConstraintTemplate": true, "RequiredLabels": true, "TellsReview": true, "Assign": true, "AssignMetadata": true, "ModifySet": true,
}

// script collects the requests of one pass. Each is about an object of its own, so
// that they do not depend on each other, and no pass on the one before it.
type script struct {
	t    *testing.T
	pass int64
	all  []request
}

// object reads YAML into an object with a name of its own in a namespace. A name
// that ends in "!" is kept.
func (s *script) object(text, namespace string) *unstructured.Unstructured {
	s.t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "$NAMESPACE", namespace)), &o.Object); err != nil {
		s.t.Fatalf("%v: %s", err, text)
	}
	name := o.GetName()
	if name == "" {
		name = "gk"
	}
	if fixed, ok := strings.CutSuffix(name, "!"); ok {
		o.SetName(fixed)
	} else {
		o.SetName(fmt.Sprintf("%s-%d-%d", name, s.pass, len(s.all)))
	}
	if !clusterScoped[o.GetKind()] {
		o.SetNamespace(namespace)
	}
	return o
}

// collection is the path of an object's resource, and the resource.
func collection(o *unstructured.Unstructured) (path, resource string) {
	path = "/apis/" + o.GetAPIVersion()
	if !strings.Contains(o.GetAPIVersion(), "/") {
		path = "/api/" + o.GetAPIVersion()
	}
	if o.GetNamespace() != "" {
		path += "/namespaces/" + o.GetNamespace()
	}
	resource = plural[o.GetKind()]
	if resource == "" {
		resource = strings.ToLower(o.GetKind())
		if !strings.HasPrefix(o.GetAPIVersion(), "constraints.gatekeeper.sh/") && !strings.HasPrefix(o.GetAPIVersion(), "mutations.gatekeeper.sh/") {
			resource += "s"
		}
	}
	return path + "/" + resource, resource
}

// add adds a request about an object, or about a subresource of it, with a query.
func (s *script) add(o *unstructured.Unstructured, sub string, r request) *request {
	r.path, r.resource = collection(o)
	if r.method != http.MethodPost || sub != "" {
		r.path += "/" + o.GetName() + sub
	}
	if sub, _, _ = strings.Cut(sub, "?"); sub != "" {
		r.resource += sub
	}
	if r.contentType == "" {
		r.contentType = "application/json"
	}
	r.name = fmt.Sprintf("%03d %s", len(s.all), r.name)
	if r.namespace = o.GetNamespace(); r.namespace != "" {
		r.name += " in " + r.namespace
	}
	s.all = append(s.all, r)
	return &s.all[len(s.all)-1]
}

// create adds the creation of an object.
func (s *script) create(name, text, namespace string) *request {
	o := s.object(text, namespace)
	return s.add(o, "", request{name: "create " + name, method: http.MethodPost, body: o.Object})
}

// dryRun makes the last request one.
func (s *script) dryRun(r *request) {
	separator := "?"
	if strings.Contains(r.path, "?") {
		separator = "&"
	}
	r.path += separator + "dryRun=All"
	r.name += ", dry run"
}

// update adds a PUT of an object that is there in another form.
func (s *script) update(name, before, after, namespace string) *request {
	old, o := s.object(before, namespace), s.object(after, namespace)
	return s.add(o, "", request{name: "update " + name, method: http.MethodPut, body: o.Object, before: []*unstructured.Unstructured{old}})
}

// patch adds a patch of an object, or of a subresource.
func (s *script) patch(kind, name, before, sub, patch, namespace string) *request {
	old := s.object(before, namespace)
	return s.add(old, sub, request{name: kind + " patch of " + name, method: http.MethodPatch,
		contentType: patches[kind], body: []byte(patch), before: []*unstructured.Unstructured{old}})
}

var patches = map[string]string{
	"merge": "application/merge-patch+json", "strategic": "application/strategic-merge-patch+json",
	"json": "application/json-patch+json", "apply": "application/apply-patch+yaml",
}

// remove adds the deletion of an object.
func (s *script) remove(name, before, namespace string) *request {
	old := s.object(before, namespace)
	return s.add(old, "", request{name: "delete " + name, method: http.MethodDelete, before: []*unstructured.Unstructured{old}})
}

// as makes another user of the sender, who may everything.
func (r *request) as(user string, groups ...string) *request {
	r.user, r.groups = user, append(groups, "system:masters")
	r.name += " as " + user
	return r
}

// gatekeeperRequests are those of one pass.
func gatekeeperRequests(t *testing.T) []request {
	s := &script{t: t, pass: asked.Add(1)}
	s.everywhere()
	s.kinds()
	s.updates()
	s.subresources()
	s.namespaces()
	s.users()
	s.texts()
	s.ofGatekeeper()
	return s.all
}

// everywhere is the same in namespaces that differ in which webhooks are called
// for them, and which policies hold.
func (s *script) everywhere() {
	for _, namespace := range []string{"gk-plain", "gk-tell", "gk-blue", "gk-ignored", "gk-excluded", "gk-unwatched", "gatekeeper-system", "kube-system", "default"} {
		for _, o := range []struct{ name, text string }{
			{"a pod", goodPod}, {"a pod of a bad image", badPod}, {"a pod of everything bad", worsePod}, {"a pod without limits", slackPod},
			{"a ConfigMap", goodMap}, {"a ConfigMap without labels", badMap}, {"a Service", service}, {"a bad Deployment", badDeployment},
		} {
			s.create(o.name, o.text, namespace)
		}
	}
}

// kinds are of many groups and versions, most of them also as a dry run.
func (s *script) kinds() {
	for _, o := range []struct{ name, text string }{
		{"a trusted pod", trustedPod}, {"a ConfigMap with bad labels", halfMap}, {"a Secret", goodSecret}, {"a bad Secret", badSecret},
		{"a Deployment", goodDeployment}, {"a StatefulSet", statefulSet}, {"a bad DaemonSet", daemonSet},
		{"a Job", job}, {"a bad Job", badJob}, {"a CronJob", cronJob}, {"a bad CronJob", badCronJob},
		{"an Ingress", ingress}, {"a NetworkPolicy", networkPolicy}, {"a ServiceAccount", account}, {"a Role", role},
		{"a PersistentVolumeClaim", claim}, {"a PodDisruptionBudget", budget}, {"a Lease", leaseObject}, {"an EndpointSlice", slice},
		{"an autoscaler of autoscaling/v1", autoscaler1}, {"an autoscaler of autoscaling/v2", autoscaler2},
		{"an event of core", coreEvent}, {"an event of events.k8s.io", eventsEvent}, {"a custom resource", gadget},
	} {
		s.create(o.name, o.text, "gk-tell")
		s.dryRun(s.create(o.name, o.text, "gk-tell"))
	}
	for _, o := range []struct{ name, text string }{{"a ClusterRole", clusterRole}, {"a PriorityClass", priorityClass}, {"a Node", node}} {
		s.create(o.name, o.text, "")
	}
	s.create("a Service of the team", blueService, "gk-blue")
	s.create("an Ingress of another team", ingress, "gk-blue")
	for _, text := range []string{goodPod, badPod, goodMap, badMap} {
		o := s.object(text, "gk-tell")
		o.SetName("")
		o.SetGenerateName("made-")
		s.add(o, "", request{name: "create with generateName", method: http.MethodPost, body: o.Object})
	}
	s.create("a ConfigMap that cannot be mutated", strings.Replace(goodMap, "metadata: {", "metadata: {name: broken, ", 1), "gk-plain")
	s.create("a ConfigMap that becomes unreadable", strings.Replace(goodMap, "metadata: {", "metadata: {name: unreadable, ", 1), "gk-plain")
	s.create("a custom resource with two metadata", dualGadget, "gk-plain")
}

// updates change what is there, by each way that there is.
func (s *script) updates() {
	for _, o := range []struct{ name, before, after string }{
		{"a ConfigMap", goodMap, strings.Replace(goodMap, "<b> & c", "d", 1)}, {"a ConfigMap that becomes bad", goodMap, badMap},
		{"a bad ConfigMap", badMap, halfMap}, {"a bad ConfigMap that becomes good", badMap, goodMap},
		{"a Deployment", goodDeployment, badDeployment}, {"a bad Deployment", badDeployment, goodDeployment},
		{"an autoscaler of v1 as v2", autoscaler1, autoscaler2}, {"an autoscaler of v2 as v1", autoscaler2, autoscaler1},
		{"a Secret", goodSecret, badSecret}, {"a Service", service, blueService}, {"a bad pod", badPod, strings.Replace(badPod, "kind: Pod,", "kind: Pod, metadata: {labels: {a: b}},", 1)},
	} {
		s.update(o.name, o.before, o.after, "gk-tell")
	}
	s.dryRun(s.update("a ConfigMap", goodMap, badMap, "gk-tell"))
	s.update("a ConfigMap", goodMap, badMap, "gk-ignored")
	s.update("a ConfigMap", goodMap, badMap, "kube-system")
	for _, namespace := range []string{"gk-plain", "gk-tell"} {
		s.patch("merge", "a ConfigMap", goodMap, "", `{"data":{"a":"e"}}`, namespace)
		s.patch("merge", "a ConfigMap's labels", goodMap, "", `{"metadata":{"labels":{"owner":null}}}`, namespace)
		s.patch("json", "a ConfigMap", goodMap, "", `[{"op":"replace","path":"/metadata/labels/tier","value":"none"}]`, namespace)
		s.patch("strategic", "a pod's image", pulledPod, "", `{"spec":{"containers":[{"name":"main","image":"web:latest"}]}}`, namespace)
		s.patch("strategic", "the image of a pod from before the policies", goodPod, "", `{"spec":{"containers":[{"name":"main","image":"web:v2"}]}}`, namespace)
		s.patch("strategic", "a Deployment's image", goodDeployment, "", `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"web:v2","args":["--debug"]}]}}}}`, namespace)
	}
	for _, o := range []struct{ name, text, patch string }{
		{"a ConfigMap", goodMap, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{"owner":"other"}},"data":{"z":"y"}}`},
		{"a ConfigMap's label", goodMap, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{"owner":"N0"}}}`},
	} {
		s.patch("apply", o.name, o.text, "?fieldManager=tester&force=true", o.patch, "gk-tell")
	}
	for _, text := range []string{goodMap, badMap, goodPod, badPod} { // not there yet
		o := s.object(text, "gk-tell")
		s.add(o, "?fieldManager=tester", request{name: "apply of a new " + o.GetKind(), method: http.MethodPatch, contentType: patches["apply"], body: o.Object})
	}
	for _, o := range []struct{ name, text string }{{"a pod", badPod}, {"a ConfigMap", badMap}, {"a Deployment", badDeployment}, {"a Lease", leaseObject}, {"an autoscaler", autoscaler2}} {
		s.remove(o.name, o.text, "gk-tell")
	}
	s.dryRun(s.remove("a ConfigMap", badMap, "gk-tell"))
	s.remove("a ClusterRole", clusterRole, "")
	two := []*unstructured.Unstructured{s.object(strings.Replace(badMap, "kind: ConfigMap,", "kind: ConfigMap, metadata: {name: one, labels: {together: \"yes\"}},", 1), "gk-tell")}
	two = append(two, s.object(strings.Replace(badMap, "kind: ConfigMap,", "kind: ConfigMap, metadata: {name: two, labels: {together: \"yes\"}},", 1), "gk-tell"))
	s.all = append(s.all, request{name: fmt.Sprintf("%03d deletecollection", len(s.all)), method: http.MethodDelete, contentType: "application/json",
		path: "/api/v1/namespaces/gk-tell/configmaps?labelSelector=together%3Dyes", namespace: "gk-tell", resource: "configmaps", before: two})
}

// subresources are those that Gatekeeper's rules name, and others.
func (s *script) subresources() {
	scale := `{"spec":{"replicas":3}}`
	for _, o := range []struct{ name, text string }{{"a Deployment", goodDeployment}, {"a bad Deployment", badDeployment}, {"a StatefulSet", statefulSet}} {
		s.patch("merge", "the scale of "+o.name, o.text, "/scale", scale, "gk-tell")
	}
	s.dryRun(s.patch("merge", "the scale of a Deployment", goodDeployment, "/scale", scale, "gk-tell"))
	s.patch("merge", "the scale of a Deployment", goodDeployment, "/scale", scale, "gk-ignored")
	condition := `{"status":{"conditions":[{"type":"Tested","status":"True","reason":"Test","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	s.patch("merge", "a Service's status", service, "/status", condition, "gk-tell")
	s.patch("merge", "a Service's status", service, "/status", condition, "gk-blue")
	s.patch("merge", "a pod's status", goodPod, "/status", `{"status":{"message":"m"}}`, "gk-tell")
	s.patch("merge", "a Deployment's status", badDeployment, "/status", `{"status":{"replicas":1}}`, "gk-tell")
	s.patch("strategic", "ephemeral containers", goodPod, "/ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"debug","image":"debug:latest"}]}}`, "gk-tell")
	s.patch("strategic", "the size of a pod", goodPod, "/resize", `{"spec":{"containers":[{"name":"main","resources":{"limits":{"cpu":"2"},"requests":{"cpu":"2"}}}]}}`, "gk-tell")
	for _, namespace := range []string{"gk-tell", "gk-ignored"} {
		for _, o := range []struct{ sub, body string }{
			{"eviction", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"$NAME"}}`},
			{"binding", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"$NAME"},"target":{"apiVersion":"v1","kind":"Node","name":"n1"}}`},
		} {
			old := s.object(goodPod, namespace)
			s.add(old, "/"+o.sub, request{name: o.sub + " of a pod", method: http.MethodPost,
				body: []byte(strings.ReplaceAll(o.body, "$NAME", old.GetName())), before: []*unstructured.Unstructured{old}})
		}
	}
	old := s.object(goodPod, "gk-tell")
	s.add(old, "/exec?command=true&stdout=true", request{name: "exec", method: http.MethodPost, before: []*unstructured.Unstructured{old}})
	s.patch("strategic", "a node's heartbeat", node, "/status", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "").as("system:node:n1", "system:nodes")
}

// namespaces have two webhooks, one of which fails closed.
func (s *script) namespaces() {
	for _, o := range []struct{ name, text string }{
		{"a namespace", goodNamespace}, {"a namespace without a team", badNamespace},
		{"a namespace that wants to be ignored", ignoredNamespace}, {"a namespace of a bad team that wants to be ignored", worseNamespace},
	} {
		s.create(o.name, o.text, "")
		s.dryRun(s.create(o.name, o.text, ""))
		s.update(o.name, goodNamespace, o.text, "")
	}
	s.patch("merge", "a namespace's labels", goodNamespace, "", `{"metadata":{"labels":{"admission.gatekeeper.sh/ignore":"x"}}}`, "")
	s.patch("merge", "a namespace's team", goodNamespace, "", `{"metadata":{"labels":{"team":"RED"}}}`, "")
	s.patch("merge", "a namespace's status", goodNamespace, "/status", `{"metadata":{"annotations":{"a":"b"}}}`, "")
	for _, name := range []string{"gk-ignored", "kube-system", "gatekeeper-system", "default"} {
		s.all = append(s.all, request{name: fmt.Sprintf("%03d label of namespace %s", len(s.all), name), method: http.MethodPatch, contentType: patches["merge"],
			path: "/api/v1/namespaces/" + name + "?dryRun=All", namespace: name, resource: "namespaces", body: []byte(`{"metadata":{"labels":{"admission.gatekeeper.sh/ignore":"y"}}}`)})
	}
	s.remove("a namespace", badNamespace, "")
	for _, group := range []string{"system:nodes", "break-glass"} {
		s.create("a namespace", goodNamespace, "").as("somebody", group)
	}
}

// users are those that policies, bypasses and failOpen rules name, and others.
func (s *script) users() {
	for _, o := range []struct{ name, text string }{{"a ConfigMap", goodMap}, {"a Role", role}, {"an autoscaler", autoscaler1}, {"an event", eventsEvent}} {
		s.create(o.name, o.text, "gk-tell").as("carol", "contractors")
		s.create(o.name, o.text, "gk-unwatched").as("carol", "contractors")
	}
	s.update("a ConfigMap", goodMap, halfMap, "gk-tell").as("carol", "contractors")
	for _, user := range []string{"dave", "system:serviceaccount:gk-tell:default", "system:serviceaccount:gatekeeper-system:gatekeeper-admin", "system:apiserver", "a \"quoted\" <user>"} {
		s.create("a pod of everything bad", worsePod, "gk-tell").as(user)
		s.create("a ConfigMap", badMap, "gk-tell").as(user, "one", "two")
	}
	s.create("a pod of everything bad", worsePod, "gk-plain").as("erin", "break-glass")
	s.create("a Node", node, "").as("system:node:n1", "system:nodes")
	r := s.create("a ConfigMap", goodMap, "gk-tell") // refused before any webhook
	r.user, r.groups, r.name = "nobody", nil, r.name+" as nobody"
}

// texts are those of denials and warnings that are long, many or strange.
func (s *script) texts() {
	pod := func(n int, nameOf func(int) string, image string) string {
		var containers []string
		for i := range n {
			containers = append(containers, fmt.Sprintf(`{name: %s, image: %q}`, nameOf(i), image))
		}
		return `{apiVersion: v1, kind: Pod, spec: {containers: [` + strings.Join(containers, ", ") + `]}}`
	}
	short := func(i int) string { return fmt.Sprintf("c%d", i) }
	long := func(i int) string { return fmt.Sprintf("%s-%02d", strings.Repeat("long-name-", 6)[:59], i) }
	s.create("a pod with 14 warnings", pod(7, short, "web:v1"), "gk-plain")
	s.create("a pod with 40 warnings", pod(20, short, "web:v1"), "gk-plain")
	s.create("a pod with a long denial", pod(60, long, "web:latest"), "gk-plain")
	s.create("a pod with a denial of ten lines", pod(10, short, "web:latest"), "gk-plain")
	for _, image := range []string{`web\nadmission webhook \"x\" denied the request: y`, `web\x1b[31m`, `wéb ünïcode 世界`, `web\u202eevil`, `web\ttab`} {
		s.create(fmt.Sprintf("a pod of the image %q", image), strings.Replace(badPod, `"registry.example.com/web:latest"`, `"`+image+`:latest"`, 1), "gk-plain")
	}
}

// ofGatekeeper are about its own kinds, which it checks itself. Dry runs: the
// policies stay as they are.
func (s *script) ofGatekeeper() {
	template := func(name, rego string) string {
		return fmt.Sprintf(`{apiVersion: templates.gatekeeper.sh/v1, kind: ConstraintTemplate, metadata: {name: %s!}, spec: {crd: {spec: {names: {kind: %s}}}, targets: [{target: admission.k8s.gatekeeper.sh, rego: %q}]}}`, strings.ToLower(name), name, rego)
	}
	for _, o := range []struct{ name, text string }{
		{"a template", template("Fine", "package fine\n\nviolation[{\"msg\": \"no\"}] { input.review.operation == \"x\" }\n")},
		{"a template that does not parse", template("Broken", "package broken\n\nviolation[{\"msg\": msg}] {\n  msg := \n}\n")},
		{"a template that does not compile", template("Wrong", "package wrong\n\nviolation[{\"msg\": msg}] {\n  a := b\n  c := d\n  msg := sprintf(\"%v\", [e])\n}\n")},
		{"a template without a violation", template("Empty", "package empty\n\nallow { true }\n")},
		{"a template of another target", strings.Replace(template("Other", "package other\n\nviolation[{\"msg\": \"no\"}] { true }\n"), "admission.k8s.gatekeeper.sh", "other.example.com", 1)},
		{"a template of another name", strings.Replace(template("Named", "package named\n\nviolation[{\"msg\": \"no\"}] { true }\n"), "name: named!", "name: unnamed!", 1)},
		{"a constraint", `{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: RequiredLabels, spec: {match: {kinds: [{apiGroups: [""], kinds: [Pod]}]}}}`},
		{"a constraint of an unknown action", `{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: RequiredLabels, spec: {enforcementAction: shout}}`},
		{"a constraint with a bad selector", `{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: TellsReview, spec: {match: {labelSelector: {matchExpressions: [{key: a, operator: Like}]}}}}`},
		{"a mutator", `{apiVersion: mutations.gatekeeper.sh/v1, kind: Assign, spec: {applyTo: [{groups: [""], kinds: [Service], versions: [v1]}], location: spec.type, parameters: {assign: {value: ClusterIP}}}}`},
		{"a mutator of metadata", `{apiVersion: mutations.gatekeeper.sh/v1, kind: Assign, spec: {applyTo: [{groups: [""], kinds: [Pod], versions: [v1]}], location: metadata.labels.a, parameters: {assign: {value: b}}}}`},
		{"a mutator of a bad location", `{apiVersion: mutations.gatekeeper.sh/v1, kind: Assign, spec: {applyTo: [{groups: [""], kinds: [Pod], versions: [v1]}], location: "spec.containers[name:", parameters: {assign: {value: b}}}}`},
		{"a mutator of spec as metadata", `{apiVersion: mutations.gatekeeper.sh/v1, kind: AssignMetadata, spec: {location: spec.a, parameters: {assign: {value: b}}}}`},
		{"a mutator of no list", `{apiVersion: mutations.gatekeeper.sh/v1, kind: ModifySet, spec: {applyTo: [{groups: [apps], kinds: [Deployment], versions: [v1]}], location: "spec.template.spec.containers[name: main].args[name: x]", parameters: {values: {fromList: [a]}}}}`},
		{"a Config of another name", `{apiVersion: config.gatekeeper.sh/v1alpha1, kind: Config, spec: {}}`},
	} {
		s.dryRun(s.create(o.name, o.text, "gk-plain"))
	}
}
