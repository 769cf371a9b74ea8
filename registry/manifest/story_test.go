// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/admission-dispatcher/dispatcher/internal/harness/manifests"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// TestStories reads the files of each story.
func TestStories(t *testing.T) {
	manifests.Stories(t, []string{"objects", "accesses", "problems", "warnings"}, func(t *testing.T, files []txtar.File) map[string]string {
		h := newHome(t)
		for _, f := range files {
			h.put(f.Name, string(f.Data))
		}
		in := h.read()
		got := map[string]string{"objects": h.objects(&in), "accesses": h.accesses(&in)}
		for _, p := range in.Problems {
			got["problems"] += h.line(p.String())
		}
		for _, p := range in.Warnings {
			got["warnings"] += h.line(p.String())
		}
		return got
	})
}

// line is a text without the home's path, as a line.
func (h *home) line(text string) string {
	return strings.ReplaceAll(text, h.dir+string(filepath.Separator), "") + "\n"
}

// objects lists what was decoded, in the order in which it takes part, but for what
// accesses lists.
func (h *home) objects(in *manifest.Input) string {
	in.Objects.Sort()
	var all []manifest.Origin
	for _, c := range in.Objects.Configurations {
		all = append(all, c.Origin)
	}
	for _, c := range in.Objects.Clusters {
		if c.Spec.KubeconfigFile == "" {
			all = append(all, c.Origin)
		}
	}
	for _, b := range in.Objects.Bindings {
		all = append(all, b.Origin)
	}
	var lines strings.Builder
	for _, at := range all {
		lines.WriteString(h.line(at.File + ": " + at.Object))
	}
	return lines.String()
}

// accesses lists what came of the Clusters' kubeconfigs.
func (h *home) accesses(in *manifest.Input) string {
	var lines strings.Builder
	for i := range in.Objects.Clusters {
		m := &in.Objects.Clusters[i]
		if m.Spec.KubeconfigFile == "" {
			continue
		}
		access, err := in.Access(m)
		text := fmt.Sprintf("server %s, name %q, authorities %q, credential in %q", access.Server, access.ServerName, access.CA,
			[]string{access.Credential.Kubeconfig, access.Credential.TokenFile, access.Credential.CertificateFile, access.Credential.KeyFile})
		if err != nil {
			text = err.Error()
		}
		lines.WriteString(h.line(m.Name + ": " + text))
	}
	return lines.String()
}
