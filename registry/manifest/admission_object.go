// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// AdmissionConfiguration is the file that kube-apiserver reads with
// --admission-control-config-file, and where it stands. A plugin that it lists is on, in
// every cluster. It has no name.
type AdmissionConfiguration struct {
	Origin
	Plugins []AdmissionPlugin
}

// AdmissionPlugin is a plugin of an AdmissionConfiguration.
type AdmissionPlugin struct {
	Name string `json:"name"`
	// Path of a file that has the configuration.
	Path string `json:"path,omitempty"`
	// Configuration comes before Path.
	Configuration json.RawMessage `json:"configuration,omitempty"`
}

const admissionConfigurationKind = "AdmissionConfiguration"

// IsConfigured reports whether the configuration stands in the entry itself.
func (p *AdmissionPlugin) IsConfigured() bool {
	return len(p.Configuration) > 0 && string(p.Configuration) != "null"
}

// Entry is where the plugin at position i stands.
func (c *AdmissionConfiguration) Entry(i int) *field.Path { return field.NewPath("plugins").Index(i) }

// Object returns the plugin at position i as the object Plugin that it stands for, with the
// configuration that its file has if it names one. It is called as the plugin is, in lower
// case.
func (c *AdmissionConfiguration) Object(i int, configuration []byte) Plugin {
	entry := &c.Plugins[i]
	p := Plugin{Origin: c.Origin, entry: c.Entry(i)}
	p.Name = strings.ToLower(entry.Name)
	p.Spec.Plugin, p.Spec.Configuration = entry.Name, entry.Configuration
	if !entry.IsConfigured() && entry.Path != "" {
		p.configuredIn, p.Spec.Configuration = c.refer(entry.Path).path, configuration
	}
	setPluginDefaults(&p.Spec)
	return p
}

var (
	errNoDirectory = errors.New("its manifest lies in no directory that it could be relative to: write what it has in configuration")
	errDocuments   = errors.New("there must be one document in it")
)

// Document returns the one document of the YAML or JSON file that the object at names, as
// JSON. Its errors are those of File.
func (in *Input) Document(at Origin, name string) (json.RawMessage, error) {
	if at.Directory == "" && !filepath.IsAbs(name) && !looksSecret(name) {
		return nil, errNoDirectory
	}
	data, err := in.File(at, name)
	if err != nil {
		return nil, err
	}
	docs, errs := documents(name, data)
	switch {
	case len(errs) > 0:
		return nil, errors.New(plainError(errs[0]))
	case len(docs) != 1:
		return nil, errDocuments
	}
	return docs[0], nil
}

func (d *decoder) admissionConfiguration(at Origin, doc []byte) error {
	var c admissionDocument
	if err := d.into(doc, &c); err != nil {
		return err
	}
	d.objects.Admission = append(d.objects.Admission, AdmissionConfiguration{at, c.Plugins})
	return nil
}

// admissionDocument is what the strict decoder fills.
type admissionDocument struct {
	metav1.TypeMeta `json:",inline"`

	Plugins []AdmissionPlugin `json:"plugins"`
}

func (d *admissionDocument) DeepCopyObject() runtime.Object { shallow := *d; return &shallow }
