// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"strings"
)

// checkNamespaces refuses a webhook whose namespaceSelector needs labels that
// nobody supplies for a cluster that it serves (E9).
func (c *compiler) checkNamespaces(e *entry, g *group) {
	keys := e.matcher.NeededLabels()
	if len(keys) == 0 {
		return
	}
	var without []string
	for _, cluster := range g.clusters {
		if cluster.Namespaces == nil {
			without = append(without, "Cluster/"+cluster.Name)
		}
	}
	if len(without) > 0 {
		c.problem(e.configuration.Problem(e.path.Child("namespaceSelector"), strings.Join(keys, ", "),
			fmt.Sprintf("needs labels that nobody supplies: neither spec.namespaces nor spec.kubeconfigFile is set in %s", enumerate(without))))
	}
}

// enumerated is how many names a Problem spells out.
const enumerated = 5

func enumerate(names []string) string {
	if len(names) <= enumerated {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:enumerated], ", "), len(names)-enumerated)
}
