// SPDX-License-Identifier: Apache-2.0

package status

import "fmt"

// clusterNotices are about what is known of clusters, one for each kind of trouble.
func (s *Status) clusterNotices(l *notices) {
	var stale, outdated, renewed concerned
	objects, kept := map[string]*concerned{}, map[string]*concerned{}
	for i := range s.Clusters {
		c := &s.Clusters[i]
		if n := c.Namespaces; n != nil && n.Stale {
			stale.add(c.Name, n.Error)
		}
		if n := c.Namespaces; n != nil && n.Credential != "" {
			renewed.add(c.Name, n.Credential)
		}
		if last := c.Counts.LastOutdated; !last.IsZero() && s.Now.Sub(last) < lately {
			outdated.add(c.Name, "")
		}
		for j := range c.Objects {
			switch o := &c.Objects[j]; {
			case o.Stale:
				of(objects, o.Resource).add(c.Name, o.Error)
			case o.Unkept > 0 || o.Partial:
				of(kept, o.Resource).add(c.Name, "")
			}
		}
	}
	say := func(c *concerned, text string, n Notice) {
		if len(c.clusters) > 0 {
			n.Severity, n.Text, n.Error, n.Clusters = warning, fmt.Sprintf(text, c), c.cause, c.clusters
			l.add(n)
		}
	}
	say(&stale, "The namespaces of %s are stale", Notice{
		Affects: "Labels of namespaces are asked for one by one; where that fails, webhooks that need them get no verdict.",
		Runbook: runbook("DispatcherNamespacesStale"),
	})
	for _, resource := range sortedKeys(objects) {
		say(objects[resource], "The "+resource+" of %s are stale", Notice{Affects: "Each is asked for one by one."})
	}
	for _, resource := range sortedKeys(kept) {
		say(kept[resource], "%s: more "+resource+" than are kept", Notice{Affects: "Each of the others is asked for."})
	}
	say(&outdated, "An older registration is applied in %s", Notice{
		Affects: "Webhooks that are new since are not called there.",
		Remedy:  "Run dispatcher registration for the cluster and apply what it prints.",
	})
	say(&renewed, "The credential for the API of %s cannot be renewed", Notice{Remedy: "Correct the files that its kubeconfig names."})
}

// concerned are the clusters of one Notice, with the error of the first that has one.
type concerned struct {
	clusters []string
	cause    string
}

func of(m map[string]*concerned, key string) *concerned {
	if m[key] == nil {
		m[key] = &concerned{}
	}
	return m[key]
}

func (c *concerned) add(cluster, cause string) {
	c.clusters = append(c.clusters, cluster)
	if c.cause == "" {
		c.cause = cause
	}
}

// String names the clusters.
func (c *concerned) String() string {
	if len(c.clusters) == 1 {
		return "cluster " + c.clusters[0]
	}
	return fmt.Sprintf("%s (%s)", Count(len(c.clusters), "cluster"), listUpTo(shownNames, c.clusters))
}
