// SPDX-License-Identifier: Apache-2.0

package manifest

import "context"

// Clusters returns the Clusters of all Sources, in the order of their names, and every
// problem of their manifests. It reads no file that one names, so they may come from a
// directory or from a Kubernetes API, which has references to Secrets and ConfigMaps.
func Clusters(ctx context.Context, sources ...Source) ([]Cluster, []Problem) {
	d := decoder{strict: newStrict(), inAPI: true}
	for _, source := range sources {
		for _, f := range source.Read(ctx) {
			d.file(f)
		}
	}
	d.objects.Sort()
	problems := append(d.problems, d.objects.Duplicates()...)
	SortProblems(problems)
	return d.objects.Clusters, problems
}
