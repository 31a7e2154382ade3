//! Encodings of the web, and real text in them: for the decoder, and for the program as a whole.

use encoding_rs::Encoding;

/// An encoding, and text that can be written in it.
const TEXTS: [(&str, &str); 32] = [
    ("UTF-8", "Narodne novine, službeni list Republike Hrvatske — 日本語"),
    ("windows-1252", "Die Gebühr beträgt 20 € für größere Städte, c’est déjà reçu"),
    ("windows-1250", "Zákon č. 106/1999 Sb., žluťoučký kůň, đački dom, Škoda"),
    ("windows-1251", "Федеральный закон об образовании в Российской Федерации"),
    ("windows-1253", "Εφημερίδα της Κυβερνήσεως της Ελληνικής Δημοκρατίας"),
    ("windows-1254", "Türkiye Cumhuriyeti Resmî Gazete, değişiklik yapıldığı gün"),
    ("windows-1255", "רשומות, ספר החוקים של מדינת ישראל"),
    ("windows-1256", "الجريدة الرسمية لجمهورية مصر العربية"),
    ("windows-1257", "Lietuvos Respublikos įstatymas, žodžių ąčęėįšųū"),
    ("windows-1258", "Công báo nước Cộng hòa"),
    ("windows-874", "ราชกิจจานุเบกษา สำนักนายกรัฐมนตรี"),
    ("ISO-8859-2", "Dziennik Ustaw Rzeczypospolitej Polskiej, zażółć gęślą jaźń"),
    ("ISO-8859-3", "Ĉiuj homoj estas denaske liberaj kaj egalaj laŭ digno"),
    ("ISO-8859-4", "Eesti Vabariigi õigusaktid, šahh ja žanr"),
    ("ISO-8859-5", "Службени гласник Републике Србије"),
    ("ISO-8859-6", "الجريدة الرسمية"),
    ("ISO-8859-7", "Νόμος για την εκπαίδευση"),
    ("ISO-8859-8", "ספר החוקים"),
    ("ISO-8859-10", "Lög um breytingu, þingið og ríkið"),
    ("ISO-8859-13", "Latvijas Republikas likums, ēka un šķūnis"),
    ("ISO-8859-14", "Ŵyth o bobl, tŷ a dŵr"),
    ("ISO-8859-15", "Le coût est de 20 € à l’œuvre"),
    ("ISO-8859-16", "Monitorul Oficial al României, știință și învățământ"),
    ("KOI8-R", "Российская газета, официальный раздел"),
    ("KOI8-U", "Відомості Верховної Ради України, її ґанок"),
    ("IBM866", "Правила внутреннего распорядка"),
    ("macintosh", "Früher schrieb man so: Äpfel, façade"),
    ("x-mac-cyrillic", "Старый документ на русском языке"),
    ("Shift_JIS", "官報に掲載された法令の一覧、カタカナとひらがな"),
    ("EUC-JP", "国立国会図書館のホームページ"),
    ("ISO-2022-JP", "電子政府の総合窓口"),
    ("EUC-KR", "대한민국 법률 제정 및 개정"),
];

/// The encodings of Chinese, apart for the limit of a line.
const CHINESE: [(&str, &str); 3] = [
    ("GBK", "中华人民共和国国务院公报，全文"),
    ("gb18030", "中华人民共和国宪法 € 㐀"),
    ("Big5", "中華民國總統府公報，全文"),
];

/// Each encoding with the text, as far as it can be written in it.
pub(crate) fn texts() -> impl Iterator<Item = (&'static Encoding, String)> {
    TEXTS.iter().chain(&CHINESE).map(|(name, text)| {
        let encoding = Encoding::for_label(name.as_bytes()).expect("a label of the standard");
        assert_eq!(encoding.name(), *name, "the table names encodings as the standard does");
        // Some of the old ones lack the typographic apostrophe and the like.
        let writable = text.chars().filter(|letter| !encoding.encode(&letter.to_string()).2).collect();
        (encoding, writable)
    })
}
