// SPDX-License-Identifier: Apache-2.0

package telemetry

import "github.com/admission-dispatcher/dispatcher/codec"

// setRequest copies what a line says of the request, except for objects.
func (d *Decision) setRequest(r *codec.Review) {
	c := clipper{&d.Cut}
	d.Request = DecisionRequest{
		UID:         c.text(r.UID),
		Kind:        c.kind(r.Kind),
		Resource:    c.resource(r.Resource),
		SubResource: c.text(r.SubResource),
		Name:        c.text(r.Name),
		Namespace:   c.text(r.Namespace),
		Operation:   r.Operation.String(),
		DryRun:      r.DryRun,
		UserInfo:    decisionUser{Username: c.text(r.User.Username), UID: c.text(r.User.UID), Groups: c.texts(r.User.Groups)},
	}
	if r.HasRequestResource {
		kind, resource := c.kind(r.RequestKind), c.resource(r.RequestResource)
		d.Request.RequestKind, d.Request.RequestResource = &kind, &resource
		d.Request.RequestSubResource = c.text(r.RequestSubResource)
	}
}

// addExtra copies userInfo.extra.
func (d *Decision) addExtra(extra []codec.ExtraValue) {
	if len(extra) == 0 {
		return
	}
	c := clipper{&d.Cut}
	all := map[string][]string{}
	for _, e := range extra[:c.most(len(extra))] {
		all[c.text(e.Key)] = c.texts(e.Values)
	}
	d.Request.UserInfo.Extra = all
}

// clipper copies borrowed names, and notes where it leaves something out.
type clipper struct{ cut *bool }

// maxList bounds the groups in a line, and other lists.
const maxList = 64

func (c clipper) text(b []byte) string {
	if len(b) > maxAttribute {
		*c.cut = true
	}
	return short(b)
}

func (c clipper) texts(list [][]byte) []string {
	all := make([]string, c.most(len(list)))
	for i := range all {
		all[i] = c.text(list[i])
	}
	return all
}

// most is how many of n members are copied.
func (c clipper) most(n int) int {
	if n > maxList {
		*c.cut = true
	}
	return min(n, maxList)
}

func (c clipper) kind(k codec.GroupVersionKind) gvk {
	return gvk{c.text(k.Group), c.text(k.Version), c.text(k.Kind)}
}

func (c clipper) resource(r codec.GroupVersionResource) gvr {
	return gvr{c.text(r.Group), c.text(r.Version), c.text(r.Resource)}
}
