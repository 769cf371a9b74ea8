// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
)

// The groups and versions that a manifest may be of.
const (
	ownVersion  = v1alpha1.Group + "/" + v1alpha1.Version
	v1Version   = "admissionregistration.k8s.io/v1"
	betaVersion = "admissionregistration.k8s.io/v1beta1"
	crdVersion  = "apiextensions.k8s.io/v1"

	configVersion      = "apiserver.config.k8s.io/v1"
	alphaConfigVersion = "apiserver.k8s.io/v1alpha1"
)

// decoder turns a manifest into objects and collects what is wrong with it.
type decoder struct {
	strict    *serializer.Serializer
	asWritten bool // without the defaults of v1
	inAPI     bool // objects may name Secrets and ConfigMaps
	decoded
}

// decoded is what came of manifests. Nobody changes it: it is used again for as long as
// they are the same.
type decoded struct {
	objects    Objects
	problems   []Problem
	warnings   []Problem
	unread     []unread                 // until it is known which of them are Params
	paramKinds map[metav1.TypeMeta]bool // that policies name
}

// newStrict returns what decodes objects strictly. It holds nothing of what it has decoded.
func newStrict() *serializer.Serializer {
	scheme := runtime.NewScheme() // knows no type: whatever it is given is decoded as it stands
	return serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme, serializer.SerializerOptions{Strict: true})
}

// whole is the manifests of all Sources, decoded.
type whole struct {
	decoded
	populated []bool               // which of the Sources hold objects
	files     map[fileSum]*decoded // each by itself
}

// decodeAll decodes the manifests of all Sources. What before has of them is taken from there:
// a change of one file costs that file, and not the memory of all.
func decodeAll(manifests [][]File, before map[fileSum]*decoded) *whole {
	w, strict := &whole{files: map[fileSum]*decoded{}}, newStrict()
	for _, files := range manifests {
		for i := range files {
			sum := sumOf(&files[i])
			of := before[sum]
			if of == nil {
				d := decoder{strict: strict}
				d.file(files[i])
				of = &d.decoded
			}
			w.files[sum] = of
			w.add(of)
		}
	}
	w.leftOver()
	for _, files := range manifests { // now that it is known what is skipped
		w.populated = append(w.populated, slices.ContainsFunc(files, func(f File) bool {
			of := w.files[sumOf(&f)]
			return of.objects.Len() > 0 || w.isParam(of.unread)
		}))
	}
	return w
}

// add appends what came of one more manifest.
func (d *decoded) add(more *decoded) {
	d.objects.add(&more.objects)
	d.problems = append(d.problems, more.problems...)
	d.unread = append(d.unread, more.unread...)
	for kind := range more.paramKinds {
		d.addParamKind(kind)
	}
}

// file decodes every document of one manifest.
func (d *decoder) file(f File) {
	if f.Err != nil {
		d.problems = append(d.problems, Problem{File: f.Name, Reason: "cannot be read: " + cause(f.Err).Error()})
		return
	}
	docs, errs := documents(f.Name, f.Data)
	at := Origin{File: f.Name, Directory: f.Directory}
	for _, doc := range docs {
		d.document(at, doc, metav1.TypeMeta{})
	}
	for i := range d.unread {
		d.unread[i].refused = f.OnlyKnownKinds
	}
	for _, err := range errs {
		d.report(at, err)
	}
}

// document decodes one object, or every item of a list. An item of a typed list
// may leave its kind to the list.
func (d *decoder) document(within Origin, doc json.RawMessage, listed metav1.TypeMeta) {
	at, meta, err := identify(within, doc, listed)
	if err != nil {
		d.report(at, err)
		return
	}
	if known, err := d.decode(at, meta, doc); err != nil {
		d.report(at, err)
	} else if !known {
		d.unread = append(d.unread, unread{Origin: at, TypeMeta: meta, doc: doc})
	}
}

// identify reads the kind and the name, leniently: the strict decoder follows.
func identify(at Origin, doc json.RawMessage, listed metav1.TypeMeta) (Origin, metav1.TypeMeta, error) {
	var head struct {
		metav1.TypeMeta
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	at.Object = "" // that of a list is not its item's
	if doc[0] != '{' {
		return at, head.TypeMeta, errors.New("must be an object")
	}
	if err := json.Unmarshal(doc, &head); err != nil {
		return at, head.TypeMeta, err
	}
	if head.TypeMeta == (metav1.TypeMeta{}) {
		head.TypeMeta = listed
	}
	if head.Kind == "" || head.APIVersion == "" {
		return at, head.TypeMeta, errors.New("apiVersion and kind are required")
	}
	at.Object = head.Kind
	if head.Kind != admissionConfigurationKind {
		at.Object += "/" + head.Metadata.Name
	}
	return at, head.TypeMeta, nil
}

// decode adds the object, if its kind is known.
func (d *decoder) decode(at Origin, meta metav1.TypeMeta, doc json.RawMessage) (known bool, err error) {
	switch meta.APIVersion + " " + meta.Kind {
	case v1Version + " ValidatingWebhookConfiguration", betaVersion + " ValidatingWebhookConfiguration":
		return true, d.validating(at, meta.APIVersion == betaVersion, doc)
	case v1Version + " MutatingWebhookConfiguration", betaVersion + " MutatingWebhookConfiguration":
		return true, d.mutating(at, meta.APIVersion == betaVersion, doc)
	case v1Version + " ValidatingAdmissionPolicy", betaVersion + " ValidatingAdmissionPolicy":
		return true, d.policy(at, doc)
	case v1Version + " ValidatingAdmissionPolicyBinding", betaVersion + " ValidatingAdmissionPolicyBinding":
		return true, d.policyBinding(at, doc)
	case v1Version + " MutatingAdmissionPolicy", betaVersion + " MutatingAdmissionPolicy":
		return true, d.mutatingPolicy(at, doc)
	case v1Version + " MutatingAdmissionPolicyBinding", betaVersion + " MutatingAdmissionPolicyBinding":
		return true, d.mutatingPolicyBinding(at, doc)
	case ownVersion + " Cluster":
		return true, d.cluster(at, doc)
	case ownVersion + " WebhookConfiguration":
		return true, d.webhookConfiguration(at, doc)
	case ownVersion + " WebhookBinding":
		return true, d.binding(at, doc)
	case ownVersion + " Plugin":
		return true, d.plugin(at, doc)
	case crdVersion + " CustomResourceDefinition":
		return true, d.customResource(at, doc)
	case configVersion + " " + admissionConfigurationKind, alphaConfigVersion + " " + admissionConfigurationKind:
		return true, d.admissionConfiguration(at, doc)
	case "v1 List":
		return true, d.list(at, metav1.TypeMeta{}, doc)
	}
	item, isList := strings.CutSuffix(meta.Kind, "List")
	if !isList || (meta.APIVersion != v1Version && meta.APIVersion != betaVersion && meta.APIVersion != ownVersion) {
		return false, nil
	}
	return true, d.list(at, metav1.TypeMeta{APIVersion: meta.APIVersion, Kind: item}, doc)
}

// validating decodes v1 and v1beta1 alike: their fields are the same.
func (d *decoder) validating(at Origin, beta bool, doc []byte) error {
	var c admissionregistrationv1.ValidatingWebhookConfiguration
	if err := d.into(doc, &c); err != nil {
		return err
	}
	d.configuration(at, beta, validatingConfiguration(&c))
	return nil
}

func (d *decoder) mutating(at Origin, beta bool, doc []byte) error {
	var c admissionregistrationv1.MutatingWebhookConfiguration
	if err := d.into(doc, &c); err != nil {
		return err
	}
	d.configuration(at, beta, mutatingConfiguration(&c))
	return nil
}

func (d *decoder) configuration(at Origin, beta bool, c Configuration) {
	c.Cluster = c.Meta.Annotations[ClusterAnnotation]
	if kind, _, ok := strings.Cut(at.Object, "/"); ok && c.Cluster != "" {
		at.Object = kind + "/" + c.Name()
	}
	c.Origin, c.Beta = at, beta
	for i := range c.Webhooks {
		if d.asWritten && !beta {
			break
		}
		setDefaults(&c.Webhooks[i], c.Phase, beta)
	}
	d.objects.Configurations = append(d.objects.Configurations, c)
}

func (d *decoder) list(at Origin, item metav1.TypeMeta, doc []byte) error {
	var list metav1.List
	if err := d.into(doc, &list); err != nil {
		return err
	}
	for i := range list.Items {
		if raw := list.Items[i].Raw; raw != nil {
			d.document(at, raw, item)
		} else {
			d.problems = append(d.problems, at.Problem(field.NewPath("items").Index(i), "", "must be an object"))
		}
	}
	return nil
}

func (d *decoder) into(doc []byte, into runtime.Object) error {
	_, _, err := d.strict.Decode(doc, nil, into)
	return err
}
