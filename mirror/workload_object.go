// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admission-dispatcher/dispatcher/lint"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// The bounds of what is mirrored of one cluster.
const (
	maxMirrored         = 32        // configurations
	maxMirroredWebhooks = 64        // of all of these
	maxMirroredBytes    = 256 << 10 // of their webhooks, as JSON
)

const (
	validatingKind = "ValidatingWebhookConfiguration"
	mutatingKind   = "MutatingWebhookConfiguration"
	// workloadPrefix begins the keys of mirrored objects; the cluster, the kind and the
	// name follow.
	workloadPrefix = "Workload/"
)

func workloadKey(cluster string, c *listedConfiguration) string {
	return workloadPrefix + cluster + "/" + c.kind + "/" + c.name
}

func sortListed(list []listedConfiguration) {
	slices.SortFunc(list, func(a, b listedConfiguration) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}

// workloadObjects makes objects of the configurations of a cluster. Those that were
// accepted come first, then the oldest; what is above the bounds is at fault.
func workloadObjects(cluster string, hosts []string, listed []listedConfiguration, accepted map[string]*object) (list []*object) {
	ordered := slices.Clone(listed)
	slices.SortStableFunc(ordered, func(a, b listedConfiguration) int {
		return cmp.Or(
			compareBool(accepted[workloadKey(cluster, &a)] == nil, accepted[workloadKey(cluster, &b)] == nil),
			a.created.Compare(b.created))
	})
	webhooks, size := 0, 0
	for i := range ordered {
		c := &ordered[i]
		o, count := workloadObject(cluster, hosts, c)
		if len(o.unresolved) == 0 {
			webhooks, size = webhooks+count, size+len(c.json)
			if i >= maxMirrored || webhooks > maxMirroredWebhooks || size > maxMirroredBytes {
				webhooks, size = webhooks-count, size-len(c.json)
				o.unresolved = []manifest.Problem{{Reason: fmt.Sprintf("is more than is mirrored of a cluster: %d configurations, %d webhooks, %d bytes", maxMirrored, maxMirroredWebhooks, maxMirroredBytes)}}
			}
		}
		list = append(list, o)
	}
	return list
}

// workloadObject makes an object of a configuration, for its cluster alone, and returns
// how many webhooks it has. The condition by which its owner leaves the calls to the
// dispatcher is not the dispatcher's. What cannot be served is a reason.
func workloadObject(cluster string, hosts []string, c *listedConfiguration) (o *object, webhooks int) {
	refuse := func(at, reason string) (*object, int) {
		o := newObject(workloadKey(cluster, c), c.created, map[string][]byte{"": c.json})
		o.unresolved = []manifest.Problem{{Field: at, Reason: reason}}
		return o, 0
	}
	if len(validation.IsDNS1123Subdomain(c.name)) > 0 {
		return refuse("metadata.name", "is no name of an object")
	}
	var list []map[string]any
	if err := json.Unmarshal(c.json, &list); err != nil || len(list) == 0 {
		return refuse("webhooks", "has no webhook")
	}
	for i, w := range list {
		at := fmt.Sprintf("webhooks[%d]", i)
		if name, _ := w["name"].(string); strings.HasSuffix(name, lint.OwnSuffix) {
			return refuse(at, "is an entry of the dispatcher's own registration")
		}
		client, _ := w["clientConfig"].(map[string]any)
		if raw, ok := client["url"]; ok {
			if text, _ := raw.(string); !allowsURL(hosts, text) {
				return refuse(at+".clientConfig.url", "its host is not in spec.mirror.hosts of Cluster/"+cluster)
			}
		}
		dropDispatched(w)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": c.kind,
		"metadata": map[string]any{"name": c.name, "annotations": map[string]string{manifest.ClusterAnnotation: cluster}},
		"webhooks": list,
	})
	if err != nil {
		return refuse("webhooks", "cannot be written")
	}
	name := fileName("workload", cluster, strings.ToLower(c.kind), c.name) + ".json"
	return newObject(workloadKey(cluster, c), c.created, map[string][]byte{name: append(text, '\n')}), len(list)
}

// callsAllowed reports whether an object that was accepted calls what may be called now.
func callsAllowed(o *object, hosts []string) bool {
	for _, text := range o.files {
		var c struct {
			Webhooks []struct {
				ClientConfig struct {
					URL *string `json:"url"`
				} `json:"clientConfig"`
			} `json:"webhooks"`
		}
		if json.Unmarshal(text, &c) != nil {
			return false
		}
		for _, w := range c.Webhooks {
			if at := w.ClientConfig.URL; at != nil && !allowsURL(hosts, *at) {
				return false
			}
		}
	}
	return true
}

// dropDispatched removes the condition that keeps the API server from calling the webhook.
func dropDispatched(w map[string]any) {
	conditions, ok := w["matchConditions"].([]any)
	if !ok {
		return
	}
	conditions = slices.DeleteFunc(conditions, func(c any) bool {
		m, _ := c.(map[string]any)
		return m["name"] == lint.DispatchedCondition && m["expression"] == "false"
	})
	if w["matchConditions"] = conditions; len(conditions) == 0 {
		delete(w, "matchConditions")
	}
}

// allowsURL reports whether the host and the port of a URL are in the list.
func allowsURL(hosts []string, raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.User != nil {
		return false
	}
	host, port := strings.ToLower(u.Hostname()), cmp.Or(u.Port(), "443")
	return slices.ContainsFunc(hosts, func(entry string) bool {
		name, wanted, ok := strings.Cut(entry, ":")
		if !ok {
			wanted = "443"
		}
		if wanted != port {
			return false
		}
		if domain, ok := strings.CutPrefix(name, "*."); ok {
			label, below, _ := strings.Cut(host, ".")
			return label != "" && below == domain
		}
		return name == host
	})
}
