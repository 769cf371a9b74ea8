// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// ActivateAnnotation with the value "Now" lets a generation that brings a change of the
// object be served at once, without the random delay that spreads a change over replicas.
const ActivateAnnotation = "dispatcher.dev/activate"

const activateNow = "Now"

// own is an object of one of our kinds.
type own interface {
	metav1.Object
	References() []v1alpha1.Reference
	Dereference()
}

// plugin has no references.
type plugin struct{ v1alpha1.Plugin }

func (*plugin) References() []v1alpha1.Reference { return nil }
func (*plugin) Dereference()                     {}

// resolver makes objects of what an API has.
type resolver struct {
	secrets, configMaps map[string]*item
}

// isIn reports whether an object of a kind is a cell's to serve. One that cannot be read
// is everybody's to report.
func isIn(cell, kind string, it *item) bool {
	if cell == "" || kind != "Cluster" || it.json == nil {
		return true
	}
	var c v1alpha1.Cluster
	return json.Unmarshal(it.json, &c) != nil || c.Spec.IsIn(cell)
}

// resolve returns the object as it would be served. References become files beside its
// manifest; one that names nothing is a reason why it cannot be judged.
func (r *resolver) resolve(kind string, it *item) *object {
	key := kind + "/" + it.Name
	if it.json == nil {
		return refusedObject(key, it, "the registry holds more than is read of it: this object is left out")
	}
	if kind == configMapKind {
		return r.manifests(key, it)
	}
	var typed own
	switch kind {
	case "Cluster":
		typed = &v1alpha1.Cluster{}
	case "WebhookBinding":
		typed = &v1alpha1.WebhookBinding{}
	case "WebhookConfiguration":
		typed = &v1alpha1.WebhookConfiguration{}
	default:
		typed = &plugin{}
	}
	if err := json.Unmarshal(it.json, typed); err != nil {
		return refusedObject(key, it, "cannot be read: "+err.Error())
	}
	files := map[string][]byte{}
	problems := namedFiles(typed)
	problems = append(problems, r.references(typed, files)...)
	if len(problems) > 0 {
		o := newObject(key, it.CreationTimestamp.Time, map[string][]byte{"": it.json})
		o.unresolved = problems
		return o
	}
	typed.Dereference()
	files[fileName(strings.ToLower(kind), it.Name)+".json"] = written(kind, typed)
	o := newObject(key, it.CreationTimestamp.Time, files)
	o.urgent = it.Annotations[ActivateAnnotation] == activateNow
	return o
}

func refusedObject(key string, it *item, reason string) *object {
	o := newObject(key, it.CreationTimestamp.Time, map[string][]byte{"": []byte(it.ResourceVersion)})
	o.unresolved = []manifest.Problem{{Object: key, Reason: reason}}
	return o
}

// namedFiles refuses fields that name files: only who may write into the process's file
// system says what lies there.
func namedFiles(o own) (problems []manifest.Problem) {
	var names []string
	switch o := o.(type) {
	case *v1alpha1.Cluster:
		names = append(o.Spec.Files(), o.Spec.KubeconfigFile)
	case *v1alpha1.WebhookBinding:
		names = o.Spec.Files()
	}
	if slices.ContainsFunc(names, func(name string) bool { return name != "" }) {
		problems = []manifest.Problem{{Reason: "names a file, which is for manifests in a directory: name a Secret or a ConfigMap"}}
	}
	return problems
}

// references reads what the object names into files, and says so in the fields for files.
func (r *resolver) references(o own, files map[string][]byte) (problems []manifest.Problem) {
	for _, ref := range o.References() {
		value, reason := r.value(ref)
		if reason != "" {
			problems = append(problems, manifest.Problem{Field: ref.Field, Reason: reason})
			continue
		}
		if ref.File == nil {
			bundle(o.(*v1alpha1.WebhookConfiguration), value)
			continue
		}
		// The content does not count, so that a renewed credential is the same file.
		name := filesDirectory + sum(fmt.Sprintf("%T", o), o.GetName(), ref.Field, ref.Kind, ref.Name, ref.Key)
		*ref.File, files[name] = name, value
	}
	return problems
}

// bundle is the certificates for webhooks that have none.
func bundle(c *v1alpha1.WebhookConfiguration, value []byte) {
	for i := range c.Spec.Webhooks {
		if at := &c.Spec.Webhooks[i].ClientConfig; len(at.CABundle) == 0 {
			at.CABundle = value
		}
	}
}

// value returns what a reference names, or why there is nothing. It shows no value.
func (r *resolver) value(ref v1alpha1.Reference) (value []byte, reason string) {
	from := r.configMaps
	if ref.Kind == secretKind {
		from = r.secrets
	}
	it := from[ref.Name]
	switch {
	case it == nil:
		return nil, fmt.Sprintf("there is no %s %s in the namespace of the registry", ref.Kind, ref.Name)
	case it.json == nil:
		return nil, fmt.Sprintf("%s %s is left out: the registry holds more than is read of it", ref.Kind, ref.Name)
	}
	data, err := it.data()
	if err != nil {
		return nil, fmt.Sprintf("%s %s cannot be read", ref.Kind, ref.Name)
	}
	value, ok := data[ref.Key]
	if !ok {
		return nil, fmt.Sprintf("%s %s has no key %s", ref.Kind, ref.Name, ref.Key)
	}
	if ref.Field == "spec.kubeconfigSecretRef" && namesFiles(value) {
		return nil, fmt.Sprintf("the kubeconfig in %s %s names files: it must hold what they have (certificate-authority-data, token ...)", ref.Kind, ref.Name)
	}
	return value, ""
}

// namesFiles reports whether a kubeconfig names files, which would be those of other
// objects.
func namesFiles(kubeconfig []byte) bool {
	var k struct {
		Clusters []struct {
			Cluster struct {
				CA string `json:"certificate-authority"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				TokenFile   string `json:"tokenFile"`
				Certificate string `json:"client-certificate"`
				Key         string `json:"client-key"`
			} `json:"user"`
		} `json:"users"`
	}
	if yaml.Unmarshal(kubeconfig, &k) != nil {
		return false // compiling says what is wrong
	}
	for _, c := range k.Clusters {
		if c.Cluster.CA != "" {
			return true
		}
	}
	for _, u := range k.Users {
		if u.User.TokenFile+u.User.Certificate+u.User.Key != "" {
			return true
		}
	}
	return false
}

// written is the object's manifest: what its author wrote, and nothing that the API
// server keeps about it.
func written(kind string, o own) []byte {
	meta := metav1.ObjectMeta{Name: o.GetName(), Labels: o.GetLabels()}
	document := map[string]any{"apiVersion": v1alpha1.Group + "/" + v1alpha1.Version, "kind": kind, "metadata": meta}
	switch o := o.(type) {
	case *v1alpha1.Cluster:
		document["spec"] = o.Spec
	case *v1alpha1.WebhookBinding:
		document["spec"] = o.Spec
	case *v1alpha1.WebhookConfiguration:
		document["spec"] = o.Spec
	case *plugin:
		document["spec"] = o.Spec
	}
	text, err := json.Marshal(document)
	if err != nil { // it was read as JSON
		panic(err)
	}
	return append(text, '\n')
}

// manifests makes an object of a ConfigMap with manifests. They are accepted together.
func (r *resolver) manifests(key string, it *item) *object {
	data, err := it.data()
	if err != nil {
		return refusedObject(key, it, "cannot be read")
	}
	files := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		extension := path.Ext(name)
		if extension != ".yaml" && extension != ".yml" && extension != ".json" {
			return refusedObject(key, it, fmt.Sprintf("the key %s ends in none of .yaml, .yml and .json", name))
		}
		files[fileName(configMapPrefix, it.Name, strings.TrimSuffix(name, extension))+extension] = data[name]
	}
	o := newObject(key, it.CreationTimestamp.Time, files)
	o.urgent = it.Annotations[ActivateAnnotation] == activateNow
	return o
}

// configMapPrefix begins the names of files with manifests of ConfigMaps.
const configMapPrefix = "configmap"

// foreign reports manifests of ConfigMaps that are of our own kinds, or name files: who may
// write ConfigMaps need not be who may write Clusters.
func foreign(o *manifest.Objects) (problems []manifest.Problem) {
	var origins []manifest.Origin
	for i := range o.Clusters {
		origins = append(origins, o.Clusters[i].Origin)
	}
	for i := range o.Bindings {
		origins = append(origins, o.Bindings[i].Origin)
	}
	for i := range o.Plugins {
		origins = append(origins, o.Plugins[i].Origin)
	}
	for i := range o.Admission {
		origins = append(origins, o.Admission[i].Origin)
	}
	for i := range o.Configurations {
		if o.Configurations[i].IsOwn() {
			origins = append(origins, o.Configurations[i].Origin)
		}
	}
	for _, at := range origins {
		if strings.HasPrefix(at.File, configMapPrefix+".") {
			problems = append(problems, at.Problem(nil, "", "cannot stand in a ConfigMap: apply it as an object of its own"))
		}
	}
	return problems
}
