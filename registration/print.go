// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/registry"
)

// YAML returns the registration as commented manifests, the same bytes each time.
func (r Registration) YAML(c *registry.Cluster) ([]byte, error) {
	var out bytes.Buffer
	comment(&out, fmt.Sprintf(`Registers the admission dispatcher in cluster %q. Made by: dispatcher registration

rules: the union of the rules of all webhooks behind the dispatcher, so that the
  API server converts objects for them and calls only when one of them cares.
  Make this again when those rules change.
failurePolicy: Fail as soon as one webhook behind the dispatcher fails closed.
namespaceSelector, matchConditions: the dispatcher's bypasses. They hold here
  too, so that this cluster can heal while the dispatcher is down.
reinvocationPolicy: Never, because the dispatcher runs the second round itself.`, c.Name))
	if c.Timeout == 0 {
		comment(&out, fmt.Sprintf(`
timeoutSeconds: %d is a guess. Set spec.timeoutSeconds of Cluster %s to what is
  registered here, so that answers are never late.`, int(defaultTimeout.Seconds()), c.Name))
	}
	var documents []any
	if r.Mutating != nil {
		documents = append(documents, r.Mutating)
	}
	if r.Validating != nil {
		documents = append(documents, r.Validating)
	}
	if len(documents) == 0 {
		comment(&out, "\nNo webhook serves this cluster: there is nothing to register.")
	}
	for i, document := range documents {
		if i > 0 {
			out.WriteString("---\n")
		}
		data, err := yaml.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("write the registration of cluster %s: %w", c.Name, err)
		}
		out.Write(data)
	}
	return out.Bytes(), nil
}

// Caller returns what makes the API server authenticate to the dispatcher: the
// file of --admission-control-config-file, and the kubeconfig that it names.
// Both say what must be filled in. With static, the first also names the
// directories of the static registration: each plugin has its own, because it
// refuses to start on the other's kind.
func Caller(host string, static bool) []byte {
	var out bytes.Buffer
	comment(&out, `The file of kube-apiserver's --admission-control-config-file. Paths are those of
the control plane's host.`)
	fmt.Fprintf(&out, `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
%s---
`, plugin("MutatingAdmissionWebhook", static, "mutate")+plugin("ValidatingAdmissionWebhook", static, "validate"))
	comment(&out, `/etc/kubernetes/admission-dispatcher/kubeconfig: the credential that the API
server presents. The user is named after the dispatcher's host and port. Instead
of a certificate it may have a token: then set bearerTokenSHA256 of the Cluster.`)
	fmt.Fprintf(&out, `apiVersion: v1
kind: Config
users:
- name: %q
  user:
    client-certificate: /etc/kubernetes/admission-dispatcher/client.crt
    client-key: /etc/kubernetes/admission-dispatcher/client.key
`, host)
	return out.Bytes()
}

func plugin(name string, static bool, phase string) string {
	manifests := ""
	if static {
		manifests = "    staticManifestsDir: /etc/kubernetes/admission-dispatcher/" + phase + "\n"
	}
	return fmt.Sprintf(`- name: %s
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: /etc/kubernetes/admission-dispatcher/kubeconfig
%s`, name, manifests)
}

func comment(out *bytes.Buffer, text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight("# "+line, " \n")
		out.WriteString(line + "\n")
	}
}
