// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"fmt"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// File is one of the files that a control plane needs.
type File struct {
	Name string
	Data []byte
}

// The names of the files of a caller, as --out writes them.
const (
	admissionFile = "admission-configuration.yaml"
	kubeconfig    = "kubeconfig"
)

// Caller returns the files that make the API server of the cluster authenticate to the
// dispatcher at host, as host:port: that of --admission-control-config-file, and the
// kubeconfig that it names, with the kind of credential that the Cluster has. They say what
// must be filled in. A cluster that presents nothing needs no kubeconfig. With static, the
// first also names the directories of the static registration: each plugin has its own,
// because it refuses to start on the other's kind.
func Caller(c *chain.Cluster, host string, static bool) []File {
	credential := credentialLines(&c.Credentials)
	var out bytes.Buffer
	switch {
	case credential == "" && !static:
		comment(&out, fmt.Sprintf(`Cluster %q presents nothing to the dispatcher: there is nothing to configure. It is
known by %s.`, c.Name, knownBy(c)))
		return []File{{admissionFile, out.Bytes()}}
	case credential == "":
		comment(&out, fmt.Sprintf(`Cluster %q presents nothing to the dispatcher: it is known by %s.
The file of kube-apiserver's --admission-control-config-file says where the static
registration is, and no more.`, c.Name, knownBy(c)))
	default:
		comment(&out, `The file of kube-apiserver's --admission-control-config-file. Paths are those of
the control plane's host.`)
	}
	fmt.Fprintf(&out, "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n%s%s",
		plugin("MutatingAdmissionWebhook", credential != "", static, "mutate"), plugin("ValidatingAdmissionWebhook", credential != "", static, "validate"))
	files := []File{{admissionFile, bytes.Clone(out.Bytes())}}
	if credential == "" {
		return files
	}
	out.Reset()
	comment(&out, `/etc/kubernetes/admission-dispatcher/kubeconfig: the credential that the API
server presents. The user is named after the dispatcher's host and port.`)
	fmt.Fprintf(&out, "apiVersion: v1\nkind: Config\nusers:\n- name: %q\n  user:\n%s", host, credential)
	return append(files, File{kubeconfig, out.Bytes()})
}

// credentialLines are the fields of the kubeconfig's user; "": there is no credential.
func credentialLines(c *chain.Credentials) string {
	switch {
	case c.Certificate:
		return `    client-certificate: /etc/kubernetes/admission-dispatcher/client.crt
    client-key: /etc/kubernetes/admission-dispatcher/client.key
`
	case c.Token:
		return `    # The token whose SHA-256 is in bearerTokenSHA256 of the Cluster. kube-apiserver
    # reads it once, at its start.
    token: ""
`
	}
	return ""
}

// knownBy says how a cluster is told that presents nothing.
func knownBy(c *chain.Cluster) string {
	if len(c.Credentials.PathSecrets) > 0 {
		return "the secret in the path of the URL that it registers"
	}
	return "the path alone (anonymous)"
}

func plugin(name string, presents, static bool, phase string) string {
	if !presents && !static {
		return ""
	}
	out := fmt.Sprintf("- name: %s\n  configuration:\n    apiVersion: apiserver.config.k8s.io/v1\n    kind: WebhookAdmissionConfiguration\n", name)
	if presents {
		out += "    kubeConfigFile: /etc/kubernetes/admission-dispatcher/kubeconfig\n"
	}
	if static {
		out += "    staticManifestsDir: /etc/kubernetes/admission-dispatcher/" + phase + "\n"
	}
	return out
}

// Stream returns files as one stream of documents.
func Stream(files []File) []byte {
	var out bytes.Buffer
	for i, f := range files {
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(f.Data)
	}
	return out.Bytes()
}

// unfilled is said where a placeholder is printed.
const unfilled = `
` + PathSecretPlaceholder + `: this cluster is known by a secret in the path. No API server accepts the
  placeholder. Fill it in without leaving the secret in a shell's history:
  dispatcher registration --path-secret-file FILE ... | kubectl apply -f -`
