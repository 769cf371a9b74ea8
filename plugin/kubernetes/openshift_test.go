// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/hook"
)

// shop is a cluster that stores objects, in YAML, by their resources. Those that are broken
// are not known.
type shop struct {
	hook.Caller // for what is not asked

	stored map[string]string // by resource: the object, of which there is one
	broken string
}

func (s shop) Objects(r schema.GroupVersionResource) hook.Objects {
	if r.Group != "" || r.Version != "v1" {
		return nil
	}
	return shelf{s, r.Resource}
}

type shelf struct {
	shop

	resource string
}

func (s shelf) Get(namespace, name string, _ time.Time) (*hook.Stored, error) {
	if s.resource == s.broken {
		return nil, errors.New("the watch is late")
	}
	text, ok := s.stored[s.resource]
	if !ok || s.resource != "namespaces" || namespace != "" || name != "shop" {
		return nil, nil //nolint:nilnil // there is none
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	return &hook.Stored{Name: name, JSON: raw}, err
}

func (s shelf) List(namespace string, _ time.Time) ([]*hook.Stored, error) {
	if s.resource == s.broken {
		return nil, errors.New("the watch is late")
	}
	text, ok := s.stored[s.resource]
	if !ok || namespace != "shop" {
		return nil, nil
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	return []*hook.Stored{{Namespace: namespace, JSON: raw}}, err
}

// in is a cluster with the namespace shop, of which more is said.
func in(metadata string) shop {
	return shop{stored: map[string]string{"namespaces": "{metadata: {name: shop" + metadata + "}}"}}
}

// The cases of OpenShift's own tests: what a namespace, a pod and the configuration say, and
// for how long the pod may run.
func TestK20RunOnceDuration(t *testing.T) {
	const never = "restartPolicy: Never"
	deadline := func(seconds int) string { return fmt.Sprintf(", activeDeadlineSeconds: %d", seconds) }
	of := func(limit string) string {
		return `, annotations: {openshift.io/active-deadline-seconds-override: "` + limit + `"}`
	}
	for name, row := range map[string]struct{ configuration, namespace, pod, want string }{
		"a limit":                     {"{activeDeadlineSecondsOverride: 10}", "", never, never + deadline(10)},
		"none":                        {"", "", never, never},
		"a longer one":                {"{activeDeadlineSecondsOverride: 10}", "", never + deadline(5), never + deadline(5)},
		"the same":                    {"{activeDeadlineSecondsOverride: 5}", "", never + deadline(5), never + deadline(5)},
		"a shorter one":               {"{activeDeadlineSecondsOverride: 4}", "", never + deadline(5), never + deadline(4)},
		"none, and one of the pod":    {"", "", never + deadline(5), never + deadline(5)},
		"the namespace's":             {"", of("1000"), never + deadline(2000), never + deadline(1000)},
		"the namespace's, for a pod":  {"", of("1000"), never, never + deadline(1000)},
		"the namespace's, longer":     {"", of("1000"), never + deadline(10), never + deadline(10)},
		"the namespace's first":       {"{activeDeadlineSecondsOverride: 10}", of("1000"), never + deadline(2000), never + deadline(1000)},
		"of a pod that restarts":      {"{activeDeadlineSecondsOverride: 10}", "", "restartPolicy: Always", "restartPolicy: Always"},
		"of a pod that says nothing":  {"{activeDeadlineSecondsOverride: 10}", "", "nodeName: a", "nodeName: a"},
		"of a pod that is to succeed": {"{apiVersion: v1, kind: RunOnceDurationConfig, activeDeadlineSecondsOverride: 10}", "", "restartPolicy: OnFailure", "restartPolicy: OnFailure" + deadline(10)},
	} {
		t.Run(name, func(t *testing.T) {
			configured(t, "RunOnceDuration", row.configuration).mutate(request{object: pod("", row.pod), caller: in(row.namespace)}).is(t, pod("", row.want))
		})
	}
	p := configured(t, "RunOnceDuration", "{activeDeadlineSecondsOverride: 10}")
	p.mutate(request{object: pod("", never), caller: in(of("long"))}).says(t,
		`403 pods "web" is forbidden: cannot parse the ActiveDeadlineSeconds limit (long) for project shop: strconv.ParseInt: parsing "long": invalid syntax`)
	p.mutate(request{object: pod("", never), caller: shop{}}).says(t, `error: namespace "shop" is not known`)
	p.mutate(request{object: pod("", never), caller: shop{broken: "namespaces"}}).says(t, "error: the watch is late")
	p.mutate(request{operation: "UPDATE", object: pod("", never), caller: in("")}).is(t, pod("", never))
	p.mutate(request{subresource: "status", object: pod("", never), caller: in("")}).is(t, pod("", never))
	for _, seconds := range []string{"0", "-1"} {
		if _, problems := configure(t, "RunOnceDuration", "{activeDeadlineSecondsOverride: "+seconds+"}"); !strings.Contains(problems, "activeDeadlineSecondsOverride: Invalid value: "+seconds+": must be greater than 0") {
			t.Error(problems)
		}
	}
}

// The cases of OpenShift's own tests: what a container has, and what it gets.
func TestK20ClusterResourceOverride(t *testing.T) {
	percent := func(limit, cpu, memory int) string {
		return fmt.Sprintf("{limitCPUToMemoryPercent: %d, cpuRequestToLimitPercent: %d, memoryRequestToLimitPercent: %d}", limit, cpu, memory)
	}
	has := func(requests, limits string) string {
		return "{requests: {" + requests + "}, limits: {" + limits + "}}"
	}
	ranges := func(limits string) shop {
		s := in("")
		s.stored["limitranges"] = "{spec: {limits: [" + limits + "]}}"
		return s
	}
	const disabled = `/cluster-resource-override-enabled: "false"}`
	for name, row := range map[string]struct {
		configuration string
		caller        shop
		has, want     string
	}{
		"without limits":                   {percent(100, 50, 50), in(""), "{}", "{}"},
		"the least":                        {percent(100, 50, 50), in(""), has("cpu: 0, memory: 0", "memory: 1Mi, cpu: 0"), has("cpu: 1m, memory: 1Mi", "memory: 1Mi, cpu: 1m")},
		"everything":                       {percent(100, 50, 50), in(""), has("cpu: 0, memory: 0", "memory: 1Gi, cpu: 2000m"), has("cpu: 500m, memory: 512Mi", `memory: 1Gi, cpu: "1"`)},
		"requests only":                    {percent(0, 50, 50), in(""), has("cpu: 0, memory: 0", "memory: 10Mi, cpu: 50m"), has("cpu: 25m, memory: 5Mi", "memory: 10Mi, cpu: 50m")},
		"without requests":                 {percent(0, 50, 50), in(""), "{limits: {memory: 10Mi, cpu: 50m}}", has("cpu: 25m, memory: 5Mi", "memory: 10Mi, cpu: 50m")},
		"turned off":                       {percent(0, 50, 50), in(", annotations: {quota.openshift.io" + disabled), has("cpu: 0", "memory: 10Mi"), has("cpu: 0", "memory: 10Mi")},
		"turned off, as later":             {percent(0, 50, 50), in(", annotations: {autoscaling.openshift.io" + disabled), has("cpu: 0", "memory: 10Mi"), has("cpu: 0", "memory: 10Mi")},
		"turned off, by a label":           {percent(0, 50, 50), in(`, labels: {clusterresourceoverrides.admission.autoscaling.openshift.io/enabled: "no"}`), has("cpu: 0", "memory: 10Mi"), has("cpu: 0", "memory: 10Mi")},
		"turned on":                        {percent(0, 0, 50), in(`, labels: {clusterresourceoverrides.admission.autoscaling.openshift.io/enabled: "true"}, annotations: {quota.openshift.io/cluster-resource-override-enabled: "true"}`), has("", "memory: 10Mi"), has("memory: 5Mi", "memory: 10Mi")},
		"much":                             {percent(100, 50, 50), in(""), has("cpu: 0, memory: 0", "memory: 1Ti, cpu: 0"), has(`cpu: "512", memory: 512Gi`, `memory: 1Ti, cpu: "1024"`)},
		"more than there is":               {percent(100, 50, 50), in(""), has("cpu: 0, memory: 0", "memory: 7Ei, cpu: 0"), has(`cpu: "3758096384", memory: 3584Pi`, `memory: 7Ei, cpu: "7516192768"`)},
		"more CPUs than can be written":    {percent(1<<62, 0, 0), in(""), has("", "memory: 7Ei"), has("", "memory: 7Ei, cpu: 9223372036854775807m")},
		"more CPUs than can be counted":    {percent(200_000_000, 0, 0), in(""), has("", "memory: 7Ei"), has("", "memory: 7Ei, cpu: 9223372036854775807m")},
		"less than nothing":                {percent(100, 0, 50), in(""), has("", "memory: -1Gi"), has("memory: 1Mi", "memory: -1Gi, cpu: 1m")},
		"little":                           {percent(500, 10, 10), in(""), has("cpu: 0, memory: 0", "memory: 1.024Mi, cpu: 0"), has("cpu: 1m, memory: 1Mi", "memory: 1.024Mi, cpu: 5m")},
		"rounded to MiB":                   {percent(500, 10, 60), in(""), has("cpu: 0, memory: 0", "memory: 512Mi, cpu: 0"), has("cpu: 250m, memory: 307Mi", "memory: 512Mi, cpu: 2500m")},
		"rounded to MB":                    {percent(0, 0, 50), in(""), has("", "memory: 5M"), has("memory: 2M", "memory: 5M")},
		"exact":                            {percent(29, 29, 29), in(""), has("", "memory: 100Gi"), has("cpu: 8410m, memory: 29Gi", `memory: 100Gi, cpu: "29"`)},
		"as it is already":                 {percent(100, 50, 50), in(""), has("cpu: 0.5, memory: 0.5Gi", "memory: 1Gi, cpu: 1000m"), has("cpu: 0.5, memory: 0.5Gi", "memory: 1Gi, cpu: 1000m")},
		"a floor of memory":                {percent(0, 0, 50), ranges("{type: Container, min: {memory: 4Gi}}"), has("", "memory: 6Gi"), has("memory: 4Gi", "memory: 6Gi")},
		"floors, of which the lowest":      {percent(0, 10, 0), ranges("{type: Container, min: {cpu: 250m}}, {type: Container, min: {cpu: 300m}}"), has("", "cpu: 1000m"), has("cpu: 250m", "cpu: 1000m")},
		"a floor of CPU limits":            {percent(50, 0, 0), ranges("{type: Container, min: {cpu: 1000m}}"), has("", "memory: 1Gi"), has("", `memory: 1Gi, cpu: "1"`)},
		"ceilings, of which the highest":   {percent(200, 0, 50), ranges("{type: Container, max: {cpu: 1, memory: 1Gi}}, {type: Container, max: {cpu: 2}}"), has("", "memory: 4Gi"), has("memory: 1Gi", `memory: 4Gi, cpu: "2"`)},
		"a floor of pods, which is for us": {percent(0, 0, 50), ranges("{type: Pod, min: {memory: 4Gi}, max: {memory: 1Mi}}"), has("", "memory: 6Gi"), has("memory: 3Gi", "memory: 6Gi")},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(resources string) string {
				return pod("", "initContainers: [{name: i, resources: "+resources+"}], containers: [{name: a}, {name: b, resources: "+resources+"}], ephemeralContainers: [{name: e, resources: "+row.has+"}]")
			}
			p := configured(t, "ClusterResourceOverride", row.configuration)
			once := p.mutate(request{object: of(row.has), caller: row.caller})
			once.is(t, of(row.want))
			if again := p.mutate(request{object: once.object, caller: row.caller}); again.Patch != nil {
				t.Errorf("asked again it answers %s", again.Patch)
			}
		})
	}
	p := configured(t, "ClusterResourceOverride", percent(100, 50, 50))
	object := pod("", "containers: [{name: a, resources: {limits: {memory: 1Gi}}}]")
	p.mutate(request{object: object, caller: shop{}}).says(t, `error: namespace "shop" is not known`)
	p.mutate(request{object: object, caller: shop{broken: "namespaces"}}).says(t, "error: the watch is late")
	late := in("")
	late.broken = "limitranges"
	p.mutate(request{object: object, caller: late}).says(t, "error: the watch is late")
	p.mutate(request{operation: "UPDATE", object: object, caller: shop{}}).is(t, object)
	for configuration, want := range map[string]string{
		"{apiVersion: v1, kind: ClusterResourceOverrideConfig, cpuRequestToLimitPercent: 200}": "cpuRequestToLimitPercent: Invalid value: 200: must be between 0 and 100",
		"{apiVersion: v1, kind: ClusterResourceOverrideConfig}":                                "plugin enabled but no percentages were specified",
		"{limitCPUToMemoryPercent: -1}":                                                        "limitCPUToMemoryPercent: Invalid value: -1: must be positive",
		"{memoryRequestToLimitPercent: 101}":                                                   "memoryRequestToLimitPercent: Invalid value: 101: must be between 0 and 100",
		"{memoryRequestToLimitPercent: -1}":                                                    "memoryRequestToLimitPercent: Invalid value: -1: must be between 0 and 100",
	} {
		if _, problems := configure(t, "ClusterResourceOverride", configuration); !strings.Contains(problems, want) {
			t.Errorf("%s: %s", configuration, problems)
		}
	}
}

// The cases of OpenShift's own tests: networks, and external IPs in them or not.
func TestK20ExternalIPRanger(t *testing.T) {
	const (
		prefix   = `403 services "web" is forbidden: `
		disabled = prefix + "spec.externalIPs: Forbidden: externalIPs have been disabled"
		outside  = prefix + "spec.externalIPs[0]: Forbidden: externalIP is not allowed"
		garbled  = prefix + "spec.externalIPs[0]: Forbidden: externalIPs must be a valid address"
	)
	for name, row := range map[string]struct {
		networks, ips string
		kind, ingress string // of the Service, and its old status
		created       bool
		want          string
	}{
		"none, created":                  {"", "", "ClusterIP", "", true, "allowed"},
		"none, updated":                  {"", "", "ClusterIP", "", false, "allowed"},
		"no network, created":            {"", "1.2.3.4", "ClusterIP", "", true, disabled},
		"no network, updated":            {"", "1.2.3.4", "ClusterIP", "", false, disabled},
		"outside, created":               {"172.0.0.0/16", "1.2.3.4", "ClusterIP", "", true, outside},
		"outside, updated":               {"172.0.0.0/16", "1.2.3.4", "ClusterIP", "", false, outside},
		"outside of those refused":       {`"!172.0.0.0/16"`, "1.2.3.4", "ClusterIP", "", true, "allowed"},
		"refused":                        {`172.0.0.0/16, "!172.0.1.0/24"`, "172.0.1.1", "ClusterIP", "", false, outside},
		"neither refused nor allowed":    {`172.0.0.0/16, "!172.200.0.0/24"`, "172.199.1.1", "ClusterIP", "", false, outside},
		"inside, created":                {"172.0.0.0/16", "172.0.0.1", "ClusterIP", "", true, "allowed"},
		"inside, updated":                {"172.0.0.1/16", "172.0.0.1", "ClusterIP", "", false, "allowed"},
		"garbled":                        {"172.0.0.0/16", "abcd", "ClusterIP", "", true, garbled},
		"with a zone":                    {`"fe80::/10"`, `"fe80::1%eth0"`, "ClusterIP", "", true, garbled},
		"an empty network":               {"0.0.0.0/32", "1.2.3.4", "ClusterIP", "", true, outside},
		"everything refused":             {`0.0.0.0/0, "!0.0.0.0/0"`, "1.2.3.4", "ClusterIP", "", true, outside},
		"in another notation":            {`"!10.0.0.0/8"`, `"::ffff:10.0.0.1"`, "ClusterIP", "", true, outside},
		"of IPv6":                        {`"2001:db8::/32"`, `"2001:db8::1"`, "ClusterIP", "", true, "allowed"},
		"two, of which one is outside":   {"172.0.0.0/16", "172.0.0.1, 1.2.3.4", "ClusterIP", "", true, prefix + "spec.externalIPs[1]: Forbidden: externalIP is not allowed"},
		"two that are outside":           {"172.0.0.0/16", "1.2.3.4, 1.2.3.5", "ClusterIP", "", true, prefix + "[spec.externalIPs[0]: Forbidden: externalIP is not allowed, spec.externalIPs[1]: Forbidden: externalIP is not allowed]"},
		"the balancer's, without others": {"", "1.2.3.4", "LoadBalancer", "1.2.3.4", false, "allowed"},
		"the balancer's and another":     {"", "1.2.3.4, 1.2.3.5", "LoadBalancer", "1.2.3.4", false, disabled},
		"the balancer's beside others":   {"172.0.0.0/16", "1.2.3.4, 172.0.0.1", "LoadBalancer", "1.2.3.4", false, "allowed"},
		"not the balancer's any more":    {"172.0.0.0/16", "1.2.3.4, 172.0.0.1", "ClusterIP", "1.2.3.4", false, outside},
		"a balancer's, created":          {"172.0.0.0/16", "1.2.3.4", "LoadBalancer", "1.2.3.4", true, outside},
		"no balancer's yet":              {"172.0.0.0/16", "1.2.3.4", "LoadBalancer", "", false, outside},
	} {
		t.Run(name, func(t *testing.T) {
			service := "{metadata: {name: web}, spec: {type: " + row.kind + ", externalIPs: [" + row.ips + "]}"
			q := request{resource: "services", object: service + ", status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}"}
			if !row.created {
				q.operation, q.old = "UPDATE", service+"}"
				if row.ingress != "" {
					q.old = service + ", status: {loadBalancer: {ingress: [{ip: " + row.ingress + "}]}}}"
				}
			}
			configured(t, "ExternalIPRanger", "{externalIPNetworkCIDRs: ["+row.networks+"], allowIngressIP: true}").validate(q).says(t, row.want)
			if row.kind == "LoadBalancer" && row.want == "allowed" {
				if got := configured(t, "ExternalIPRanger", "{externalIPNetworkCIDRs: ["+row.networks+"]}").validate(q); got.Allowed {
					t.Error("it is allowed where it need not be")
				}
			}
		})
	}
	p := configured(t, "ExternalIPRanger", "{apiVersion: network.openshift.io/v1, kind: ExternalIPRangerAdmissionConfig, externalIPNetworkCIDRs: [10.0.0.0/8]}")
	p.validate(request{operation: "DELETE", resource: "services", old: "{}"}).says(t, "allowed")
	p.validate(request{resource: "services", subresource: "status", object: "{spec: {externalIPs: [1.1.1.1]}}"}).says(t, "allowed")
	p.validate(request{resource: "services"}).says(t, "error: there is no Service in the review")
	many := request{resource: "services", object: "{metadata: {name: web}, spec: {externalIPs: [" + strings.Repeat("10.0.0.1, ", 1000) + "10.0.0.2]}}"}
	p.validate(many).says(t, prefix+"spec.externalIPs: Too many: 1001: must have at most 1000 items")
	if _, problems := configure(t, "ExternalIPRanger", `{externalIPNetworkCIDRs: [10.0.0.0, "!!10.0.0.0/8", "::ffff:10.0.0.0/104"]}`); strings.Count(problems, "must be a CIDR") != 3 {
		t.Error(problems)
	}
}
