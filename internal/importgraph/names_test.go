// SPDX-License-Identifier: Apache-2.0

package importgraph

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// roles are the names that files of several packages have, because they play the
// same role there. Any other name leads to one file.
func roles() map[string]string {
	return map[string]string{
		"admin.go":        "the admin listener, and what a process does with it",
		"authorizer.go":   "what the authorizer of a cluster is asked",
		"body.go":         "the bytes of a review",
		"chain.go":        "the chain of a cluster",
		"client.go":       "who sends HTTP requests",
		"caller.go":       "who calls: a cluster, as a Target sees it and as the demo plays it",
		"cluster.go":      "what there is for one cluster",
		"condition.go":    "a CEL expression that is true or false",
		"config.go":       "the configuration of the process",
		"conn.go":         "a connection",
		"credentials.go":  "the credentials that files hold",
		"decode.go":       "strict decoding into objects",
		"check.go":        "whether a configuration can be meant",
		"demo.go":         "the demo",
		"error.go":        "the errors of a package",
		"explain.go":      "what would become of a review, and why",
		"form.go":         "the form in which a review is sent",
		"handler.go":      "one request, from its head to its answer",
		"hook.go":         "a Hook",
		"identity.go":     "which credentials say that a caller is which cluster",
		"limits.go":       "what bounds what others can make this process hold",
		"log.go":          "lines that are written",
		"main.go":         "what starts a program",
		"namespace.go":    "a namespace and its labels",
		"patch.go":        "a JSON patch",
		"queue.go":        "what waits to be written",
		"record.go":       "what is logged of an admission",
		"refusal.go":      "why an admission is refused",
		"registration.go": "what a cluster applies to call this process",
		"request.go":      "one request",
		"result.go":       "how one attempt ended",
		"rule.go":         "a rule that matches requests",
		"selector.go":     "label selectors",
		"settings.go":     "what a package is told when it is made",
		"source.go":       "a source of configuration",
		"status.go":       "what the status page shows",
		"table.go":        "a table that people read",
		"target.go":       "what there is for one Target",
		"trace.go":        "spans",
		"validate.go":     "validating: reviews, and configuration",
		"webhook.go":      "what there is for one webhook",
		"admission.go":    "one admission",
	}
}

// TestFilesOfOneName: who reads the name of a file knows which one is meant, or that
// it plays the role that it plays elsewhere, too.
func TestFilesOfOneName(t *testing.T) {
	files := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && isNoProduct(path):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			files[d.Name()] = append(files[d.Name()], path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	known := roles()
	for name, paths := range files {
		_, ok := known[name]
		switch several := len(paths) > 1; {
		case several && !ok:
			t.Errorf("%q have the same name: give one of them another, or, if they play the same role, say which in roles() in internal/importgraph/names_test.go", paths)
		case ok && !several:
			t.Errorf("roles() in internal/importgraph/names_test.go has %s, and there is only %s", name, paths[0])
		}
		delete(known, name)
	}
	for name := range known {
		t.Errorf("roles() in internal/importgraph/names_test.go has %s, which no file is named", name)
	}
}

// isNoProduct reports whether a folder has no product code: modules of their own, tests,
// and what measures and checks.
func isNoProduct(path string) bool {
	name := filepath.Base(path)
	switch filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator))) {
	case "conformance", "deploy", "e2e", "examples", "loadtest", "bin", "internal/harness", "internal/mutate", "internal/corpus", "internal/projects", "internal/tally":
		return true
	}
	return name == "testdata" || strings.HasPrefix(name, ".") && name != ".."
}
