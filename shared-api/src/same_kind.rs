//! Types that hold an object of a kind in another form.

/// Implements the part of [`kube::Resource`] that names the kind, with the names of another type.
#[macro_export]
macro_rules! same_kind_as {
    ($kind:ty) => {
        type DynamicType = <$kind as ::kube::Resource>::DynamicType;
        type Scope = <$kind as ::kube::Resource>::Scope;

        fn kind(dynamic: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
            <$kind as ::kube::Resource>::kind(dynamic)
        }

        fn group(dynamic: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
            <$kind as ::kube::Resource>::group(dynamic)
        }

        fn version(dynamic: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
            <$kind as ::kube::Resource>::version(dynamic)
        }

        fn plural(dynamic: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
            <$kind as ::kube::Resource>::plural(dynamic)
        }
    };
}
