// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// turns notes how much work waited for its turn.
type turns struct {
	sizes []int
	err   error
	comes func() // nil: nothing happens then

	open, lookups int // turns that are held, and lookups that there were
}

func (a *turns) Turn(_ string, size int, _ time.Time) (done func(), err error) {
	a.sizes = append(a.sizes, size)
	if a.comes != nil {
		a.comes()
	}
	a.open++
	return func() { a.open-- }, a.err
}

// updating returns the View of an update.
func updating(t *testing.T) *hook.View {
	t.Helper()
	return viewOfText(t, nil, strings.Replace(review, `"object":`, `"oldObject":{"metadata":{"name":"web"}},"object":`, 1))
}

func (a *turns) Hold(string, *codec.Body, bool) error { return nil }

func (a *turns) LookUp(string) (done func(), err error) {
	if a.err != nil {
		return nil, a.err
	}
	a.lookups++
	if a.open > 0 {
		return nil, errors.New("a turn is held")
	}
	return func() {}, nil
}

// H11 What many params take is the cluster's own turn, as a large object is: nobody else
// waits for it.
func TestParamsTakeTheClustersTurn(t *testing.T) {
	one, two := limits("shop", "a", 9, "pods"), limits("shop", "b", 9, "pods")
	p := paramsOf(t, refTo("", "", "Deny", "pods"), one, two)
	size, objects := len(one.JSON)+len(two.JSON), len(updating(t).Object.Raw)+len(updating(t).Review.OldObject.Raw)
	for text, want := range map[string][]int{
		"{paramKind: {}, validations: [{expression: \"params.data.max == '9'\"}]}":                         {size},
		"{paramKind: {}, validations: [{expression: \"params.data.max == '9' && has(object.metadata)\"}]}": {size + objects},
		"{validations: [{expression: \"request.name != ''\"}]}":                                            nil,
		"{validations: [{expression: \"has(object.metadata)\"}]}":                                          {objects},
	} {
		params := p
		if text[1] == 'v' {
			params = nil
		}
		account := &turns{}
		v := updating(t)
		v.Account = account
		b := bindingOf(t, text, "", params, "Deny")
		got := ask(v, b, time.Time{})
		if !slices.Equal(account.sizes, want) || got.err != nil {
			t.Errorf("%s: turns of %v, and not %v; %v", text, account.sizes, want, got.err)
		}
		if account.err = errors.New("busy"); want == nil {
			continue
		}
		fresh := updating(t)
		fresh.Account = account
		if call, ok := errors.AsType[*hook.CallError](ask(fresh, b, time.Time{}).err); !ok || call.Cause != hook.Shed {
			t.Errorf("%s: without a turn: %v", text, call)
		}
	}
}

// H11 To decode them is part of it: nothing is decoded before the turn comes.
func TestParamsAreDecodedInTurn(t *testing.T) {
	one := limits("shop", "a", 1)
	v := asking(t, nil, "shop")
	v.Account = &turns{comes: func() { one.JSON = limits("shop", "a", 9).JSON }}
	b := bindingOf(t, "{paramKind: {}, validations: [{expression: \"params.data.max == '9'\"}]}", "", paramsOf(t, refTo("a", "", "Deny"), one), "Deny")
	if got := ask(v, b, time.Time{}); !got.resp.Allowed || got.err != nil {
		t.Errorf("%+v", got)
	}
}
