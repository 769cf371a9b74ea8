// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/command"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/plugin"
)

var update = flag.Bool("update", false, "rewrite what the stories compare with")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"dispatcher": func() {
		listing := plugin.New("Listing", nil, func(*struct{}) (any, field.ErrorList) { return validator{}, nil })
		listing.Rules = append(listing.Rules, plugin.Rule("", "v1", []string{"pods"}, "CREATE"))
		listing.Lists = []schema.GroupVersionResource{
			{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}, {Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "limitranges"},
		}
		os.Exit(command.Run(command.Options{Version: "devel", Plugins: []plugin.Plugin{listing}}, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) //nolint:forbidigo // it is the main of a process of its own
	}})
}

// validator is a plugin that says what no script asks for.
type validator struct{ plugin.Validator }

// TestScripts runs the stories of testdata/script against the real command line.
// Each starts in a directory with a certificate and the example manifests.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               furnish,
		UpdateScripts:       *update,
	})
}

// A character device is no terminal: nobody looks at /dev/null.
func TestTerminal(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	if command.IsTerminal(null) || command.IsTerminal(new(strings.Builder)) {
		t.Error("it is taken for a terminal")
	}
}

// furnish puts ca.crt, serving.crt and serving.key, and a link to the example
// manifests, into a story's directory.
func furnish(env *testscript.Env) error {
	authority, err := pki.NewAuthority("test")
	if err != nil {
		return err
	}
	pair, err := authority.Issue(pki.Subject{CommonName: "dispatcher", DNSNames: []string{"localhost"}})
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"ca.crt": authority.PEM, "serving.crt": pair.Certificate, "serving.key": pair.Key} {
		if err := os.WriteFile(env.WorkDir+"/"+name, data, 0o600); err != nil {
			return err
		}
	}
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	return os.CopyFS(env.WorkDir+"/registry", os.DirFS(wd+"/../examples/quickstart"))
}
